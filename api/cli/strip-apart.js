import { spawnSync } from "node:child_process";
import { registerHooks } from "node:module";
import { fileURLToPath } from "node:url";
import { isMainThread } from "node:worker_threads";

// Node's type stripper takes 30 MB that are never given back, which a daemon cannot afford: a process of its own strips
// what a daemon may load, and ends. What that one did not strip is stripped here as ever.
const MOST_BYTES = 64 * 1024 * 1024;

/** @returns {Map<string, string>} url -> JavaScript; empty where no process could be started */
function strippedApart() {
  const script = fileURLToPath(new URL("strip-all.js", import.meta.url));
  const { status, stdout } = spawnSync(process.execPath, ["--no-warnings", script], {
    encoding: "utf8",
    maxBuffer: MOST_BYTES,
    stdio: ["ignore", "pipe", "ignore"],
  });
  try {
    return new Map(status === 0 ? JSON.parse(stdout) : []);
  } catch {
    return new Map();
  }
}

const sources = isMainThread ? strippedApart() : new Map();

registerHooks({
  load(url, context, next) {
    const source = sources.get(url);
    if (source === undefined) return next(url, context);
    sources.delete(url);
    return { format: "module", shortCircuit: true, source };
  },
});
