import { spawnSync } from "node:child_process";
import { hash } from "node:crypto";
import { cpSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, renameSync, rmSync } from "node:fs";
import { basename, join } from "node:path";
import { CACHE } from "./cache.ts";

/** On a machine with empty caches, Go downloads and compiles all modules. */
const BUILD_MS = 240_000;

const go = (cwd: string, ...args: readonly string[]) =>
  spawnSync("go", args, {
    cwd,
    encoding: "utf8",
    timeout: BUILD_MS,
    env: { ...process.env, GOFLAGS: "-mod=mod", GOTOOLCHAIN: "local" },
  });

/**
 * The program of a folder of Go sources. It is built into the cache, unless the same Go has already built the same
 * sources there. `missing`: what the machine lacks; a compile error throws.
 */
export function goBuilt(
  source: string,
  modfile = "go.mod",
): { readonly program: string } | { readonly missing: string } {
  const version = go(source, "version");
  if (version.error !== undefined) return { missing: "there is no Go toolchain" };
  const texts = readdirSync(source).map((name) => [name, readFileSync(join(source, name), "utf8")]);
  const key = hash("sha256", JSON.stringify([version.stdout, modfile, texts])).slice(0, 16);
  const program = join(CACHE, "go", `${basename(source)}-${key}`);
  if (existsSync(program)) return { program };
  mkdirSync(join(CACHE, "go"), { recursive: true });
  const work = mkdtempSync(join(CACHE, "go", "build-"));
  try {
    cpSync(source, work, { recursive: true });
    const modules = go(work, "mod", "download", `-modfile=${modfile}`);
    if (modules.status !== 0)
      return { missing: `its modules cannot be had: ${modules.stderr.trim().split("\n").at(-1)}` };
    const built = go(work, "build", `-modfile=${modfile}`, "-o", "program", ".");
    const words = built.stderr.replace(/^go: downloading .*$/gm, "").trim();
    if (built.status !== 0 || words !== "") throw new Error(`${source}: go build: ${built.error?.message ?? words}`);
    // two tests may build the program at the same time, and neither may find an incomplete one
    renameSync(join(work, "program"), program);
    return { program };
  } finally {
    rmSync(work, { recursive: true });
  }
}
