import { execFileSync, spawnSync } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { BUILT, NODE } from "./run.ts";

const ROOT = resolve(import.meta.dirname, "../..");
const NPM = ["--ignore-scripts", "--silent"];

/** The top-level files and folders of a checkout that are packed, without `dist`. */
function packedRoots(): readonly string[] {
  const { files } = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8")) as { files: readonly string[] };
  const roots = new Set(["package.json", "README.md", "LICENSE", ...files.map((file) => file.split("/")[0] ?? "")]);
  return [...roots].filter((root) => root !== "dist");
}

/**
 * Runs `npm run build` into `folder` and adds the other packed files: a checkout without sources. Returns the folder.
 */
export function built(folder: string): string {
  const filter = (path: string): boolean => !path.endsWith(".ts");
  for (const root of packedRoots()) cpSync(join(ROOT, root), join(folder, root), { recursive: true, filter });
  const { status, stderr } = spawnSync(NODE, [join(ROOT, "build.ts"), join(folder, "dist")], { encoding: "utf8" });
  if (status !== 0) throw new Error(`build.ts: ${stderr}`);
  return folder;
}

/**
 * Runs `npm run build && npm pack` in `folder`, a new one by default, so that two test files may do it at the same
 * time. Returns the file.
 */
export function pack(folder = mkdtempSync(join(tmpdir(), "nodewise-packed-"))): string {
  mkdirSync(folder, { recursive: true });
  const cwd = BUILT ?? built(join(folder, "checkout"));
  const packed = execFileSync("npm", ["pack", "--json", "--pack-destination", folder, ...NPM], { cwd });
  const [{ filename }] = JSON.parse(String(packed)) as [{ filename: string }];
  return join(folder, filename);
}

/** Installs the packed file below `prefix` as a person does; returns the path of the installed command. */
export function install(file: string, prefix: string): string {
  execFileSync("npm", ["install", "--global", "--prefix", prefix, "--prefer-offline", ...NPM, file]);
  return join(prefix, "bin/nodewise");
}
