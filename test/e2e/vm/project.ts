import { cp, mkdir, readdir, readFile, symlink } from "node:fs/promises";
import { dirname, join, relative } from "node:path";
import { BUILT } from "../../cli/run.ts";

const PROJECT = join(import.meta.dirname, "../../..");
/** The prefix of the package's installation in the systemd unit, with the layout of `npm install --global --prefix`. */
const PREFIX = "/opt/nodewise";
const INSTALLED = join(PREFIX, "lib/node_modules/nodewise");
export const LOCK_FILE = join(PROJECT, "package-lock.json");
/** Folders in packages that are needed only to compile the package. */
const UNUSED = /\/better-sqlite3\/(?:deps|src)$/;

/** Copies the packages of an installation to where the installed program looks for them, and links its command. */
export async function addPackages(tree: string): Promise<void> {
  const lock = JSON.parse(await readFile(LOCK_FILE, "utf8")) as { packages: Record<string, object> };
  const names = Object.entries(lock.packages)
    .filter(([name]) => name.startsWith("node_modules/"))
    .filter(([, entry]) => !["dev", "devOptional", "optional", "link"].some((trait) => trait in entry))
    .map(([name]) => name);
  for (const name of names) {
    const filter = (source: string): boolean => !UNUSED.test(source);
    await cp(join(PROJECT, name), join(tree, INSTALLED, name), { recursive: true, filter });
  }
  const command = join(PREFIX, "bin/nodewise");
  await mkdir(dirname(join(tree, command)), { recursive: true });
  await symlink("../lib/node_modules/nodewise/api/cli/nodewise.js", join(tree, command));
  // the command's first line names this path
  await symlink("/bin/busybox", join(tree, "usr/bin/env"));
}

/** The built package's files by their paths in the guest. */
export async function projectFiles(): Promise<Record<string, Uint8Array>> {
  const root = BUILT;
  if (root === undefined) throw new Error("test/cli/build-once.ts has not built the package");
  const found = (await readdir(root, { recursive: true, withFileTypes: true })).filter((one) => one.isFile());
  const paths = found.map((file) => join(file.parentPath, file.name)).filter((path) => !path.endsWith(".map"));
  const files = paths.map(async (path) => [join(INSTALLED, relative(root, path)), await readFile(path)] as const);
  return Object.fromEntries(await Promise.all(files));
}
