import { execFileSync, spawnSync } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { NODE } from "./run.ts";

const ROOT = resolve(import.meta.dirname, "../..");
const NPM = ["--ignore-scripts", "--silent"];

/** The files of a checkout that can be packed, without `dist`. */
function packedRoots(): readonly string[] {
  const { files } = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8")) as { files: readonly string[] };
  const roots = new Set(["package.json", "README.md", "LICENSE", ...files.map((file) => file.split("/")[0] ?? "")]);
  return [...roots].filter((root) => root !== "dist");
}

/** Makes what `npm run build && npm pack` make, in `folder`, which is new: two test files may do so at a time. Answers the file. */
export function pack(folder = mkdtempSync(join(tmpdir(), "nodewise-packed-"))): string {
  const checkout = join(folder, "checkout");
  mkdirSync(checkout, { recursive: true });
  for (const root of packedRoots()) cpSync(join(ROOT, root), join(checkout, root), { recursive: true });
  const built = spawnSync(NODE, [join(ROOT, "build.ts"), join(checkout, "dist")], { encoding: "utf8" });
  if (built.status !== 0) throw new Error(`build.ts: ${built.stderr}`);
  const packed = execFileSync("npm", ["pack", "--json", "--pack-destination", folder, ...NPM], { cwd: checkout });
  const [{ filename }] = JSON.parse(String(packed)) as [{ filename: string }];
  return join(folder, filename);
}

/** Installs the packed file as a person does, below `prefix`; answers the command that is then there. */
export function install(file: string, prefix: string): string {
  execFileSync("npm", ["install", "--global", "--prefix", prefix, "--prefer-offline", ...NPM, file]);
  return join(prefix, "bin/nodewise");
}
