import { chmod, copyFile, cp, mkdir, readFile, symlink, writeFile } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { type CpioEntry, cpioArchive } from "./cpio.ts";
import { run, sharedLibraries, toolPath } from "./host.ts";
import type { Kernel } from "./kernel.ts";

/**
 * The kernel modules for a virtio disk, in an order in which they can be loaded (ext4 is built in). The last one is for
 * the containers' file systems.
 */
const MODULES = [
  "virtio_ring",
  "virtio",
  "virtio_pci_modern_dev",
  "virtio_pci_legacy_dev",
  "virtio_pci",
  "virtio_blk",
  "overlay",
];

/** The disk file is sparse, so it uses only the space of its content. */
const DISK_SIZE = "1G";

const EMPTY_FOLDERS = ["dev", "etc", "proc", "root", "run", "sbin", "sys", "tmp", "usr/bin", "var/lib", "var/log"];

/** Writes the initramfs: the guest's first program, busybox and the modules. */
export async function writeInitramfs(kernel: Kernel, target: string): Promise<void> {
  const entries: CpioEntry[] = ["bin", "dev", "disk", "modules"].map((path) => ({ kind: "directory", path }));
  const add = async (path: string, source: string) =>
    entries.push({ kind: "file", path, content: await readFile(source) });
  await add("init", join(import.meta.dirname, "init.sh"));
  await add("bin/busybox", toolPath("busybox"));
  for (const module of MODULES) {
    const source = kernel.modules.get(module);
    if (source === undefined) throw new Error(`kernel ${kernel.image} has no module ${module}.ko: see MODULES`);
    await add(`modules/${module}.ko`, source);
  }
  const order = Buffer.from(`${MODULES.join("\n")}\n`);
  await writeFile(target, cpioArchive([...entries, { kind: "file", path: "modules/order", content: order }]));
}

/** Copies a program into the tree at `guestPath`, with the shared libraries that it needs. */
async function addProgram(tree: string, program: string, guestPath: string): Promise<void> {
  await copyFile(program, join(tree, guestPath));
  for (const library of await sharedLibraries(program)) {
    await mkdir(dirname(join(tree, library)), { recursive: true });
    await cp(library, join(tree, library), { dereference: true });
  }
}

async function addBusybox(tree: string): Promise<void> {
  await mkdir(join(tree, "bin"));
  await copyFile(toolPath("busybox"), join(tree, "bin/busybox"));
  const applets = (await run("busybox", ["--list"])).trim().split("\n");
  const links = applets.filter((applet) => applet !== "busybox");
  await Promise.all(links.map((applet) => symlink("busybox", join(tree, "bin", applet))));
}

/**
 * Makes the tree of the guest's disk in `folder`: busybox, the Node that runs this program, and the programs of a
 * container runtime. Returns the tree's path.
 */
export async function makeTree(folder: string, runtime: readonly string[]): Promise<string> {
  const tree = join(folder, "tree");
  for (const path of EMPTY_FOLDERS) await mkdir(join(tree, path), { recursive: true });
  await addBusybox(tree);
  await addProgram(tree, process.execPath, "usr/bin/node");
  for (const program of runtime) await addProgram(tree, program, join("usr/bin", basename(program)));
  for (const name of ["start", "job"]) {
    await copyFile(join(import.meta.dirname, `${name}.sh`), join(tree, "sbin", name));
    await chmod(join(tree, "sbin", name), 0o755);
  }
  await writeFile(join(tree, "etc/passwd"), "root:x:0:0:root:/root:/bin/sh\n");
  await writeFile(join(tree, "etc/group"), "root:x:0:\n");
  await writeFile(join(tree, "etc/hosts"), "127.0.0.1 localhost\n");
  await writeFile(join(tree, "etc/resolv.conf"), "");
  return tree;
}

/** Makes an ext4 file of a tree. It needs no journal, because a disk is used for one run only. */
export async function writeDisk(tree: string, target: string): Promise<void> {
  const options = ["-q", "-t", "ext4", "-O", "^has_journal", "-E", "root_owner=0:0"];
  await run("mke2fs", [...options, "-d", tree, target, DISK_SIZE]);
}
