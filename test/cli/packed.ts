import { execFileSync, spawnSync } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { BUILT, NODE } from "./run.ts";

const ROOT = resolve(import.meta.dirname, "../..");
const NPM = ["--ignore-scripts", "--silent"];

/** The roots of a checkout that can be packed, without `dist`. */
function packedRoots(): readonly string[] {
  const { files } = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8")) as { files: readonly string[] };
  const roots = new Set(["package.json", "README.md", "LICENSE", ...files.map((file) => file.split("/")[0] ?? "")]);
  return [...roots].filter((root) => root !== "dist");
}

/** What `npm run build` makes, with what else is packed beside it, in `folder`: a checkout without sources. Answers the folder. */
export function built(folder: string): string {
  const filter = (path: string): boolean => !path.endsWith(".ts");
  for (const root of packedRoots()) cpSync(join(ROOT, root), join(folder, root), { recursive: true, filter });
  const { status, stderr } = spawnSync(NODE, [join(ROOT, "build.ts"), join(folder, "dist")], { encoding: "utf8" });
  if (status !== 0) throw new Error(`build.ts: ${stderr}`);
  return folder;
}

/** Makes what `npm run build && npm pack` make, in `folder`, which is new: two test files may do so at a time. Answers the file. */
export function pack(folder = mkdtempSync(join(tmpdir(), "nodewise-packed-"))): string {
  mkdirSync(folder, { recursive: true });
  const cwd = BUILT ?? built(join(folder, "checkout"));
  const packed = execFileSync("npm", ["pack", "--json", "--pack-destination", folder, ...NPM], { cwd });
  const [{ filename }] = JSON.parse(String(packed)) as [{ filename: string }];
  return join(folder, filename);
}

/** Installs the packed file as a person does, below `prefix`; answers the command that is then there. */
export function install(file: string, prefix: string): string {
  execFileSync("npm", ["install", "--global", "--prefix", prefix, "--prefer-offline", ...NPM, file]);
  return join(prefix, "bin/nodewise");
}
