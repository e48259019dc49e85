import { readdirSync, readFileSync } from "node:fs";
import { stripTypeScriptTypes } from "node:module";
import { fileURLToPath } from "node:url";

// Prints [[url, JavaScript], ...] of the modules that a daemon may load.
const ROOT = new URL("../../", import.meta.url);
const FOLDERS = ["actuator/", "api/"];

const modules = FOLDERS.flatMap((folder) => {
  const base = new URL(folder, ROOT);
  return readdirSync(fileURLToPath(base), { recursive: true })
    .filter((name) => name.endsWith(".ts"))
    .map((name) => new URL(name, base))
    .map((url) => [url.href, stripTypeScriptTypes(readFileSync(url, "utf8"))]);
});
process.stdout.write(JSON.stringify(modules));
