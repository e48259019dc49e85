import { createHash } from "node:crypto";
import { access, copyFile, mkdir, mkdtemp, readFile, rename, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ok, type Result } from "../../../api/model/result.ts";
import { containerPrograms } from "../containerd/programs.ts";
import { checkHost, type GuestAbsent, toolPath } from "./host.ts";
import { writeDisk, writeInitramfs } from "./image.ts";
import { fetchKernel, findKernelPackage, type KernelPackage } from "./kernel.ts";

/** The three files that a virtual machine starts from; nothing changes them after they are made. */
export type Guest = { readonly kernel: string; readonly initramfs: string; readonly disk: string };

/** A change in one of these files makes a new guest. */
const RECIPE = ["build.ts", "cpio.ts", "host.ts", "image.ts", "init.sh", "kernel.ts", "start.sh"];

async function describeFile(path: string): Promise<string> {
  const { size, mtimeMs } = await stat(path);
  return `${path} ${size} ${mtimeMs}`;
}

/** Where they are not, the guest goes without: only jobs that run containers need them. */
function runtimePrograms(): readonly string[] {
  const programs = containerPrograms();
  return "missing" in programs ? [] : programs.all;
}

/** One key for everything that goes into the guest. */
async function inputKey(kernel: KernelPackage): Promise<string> {
  const hash = createHash("sha256");
  for (const file of RECIPE) hash.update(await readFile(join(import.meta.dirname, file))).update("\0");
  hash.update(`${kernel.name} ${kernel.version}\0`);
  for (const program of [process.execPath, toolPath("busybox"), ...runtimePrograms()]) {
    hash.update(`${await describeFile(program)}\0`);
  }
  return hash.digest("hex").slice(0, 16);
}

function guestIn(folder: string): Guest {
  return { kernel: join(folder, "vmlinuz"), initramfs: join(folder, "initramfs"), disk: join(folder, "disk") };
}

async function exists(path: string): Promise<boolean> {
  return access(path).then(
    () => true,
    () => false,
  );
}

/** Makes the guest beside the cache and moves it there whole, so that nobody sees half of one. */
async function make(kernelPackage: KernelPackage, folder: string): Promise<Result<null, GuestAbsent>> {
  const work = await mkdtemp(`${folder}-making-`);
  try {
    const kernel = await fetchKernel(kernelPackage, work);
    if (!kernel.ok) return kernel;
    const done = join(work, "done");
    await mkdir(done, { mode: 0o700 });
    const guest = guestIn(done);
    await copyFile(kernel.value.image, guest.kernel);
    await writeInitramfs(kernel.value, guest.initramfs);
    await writeDisk(work, guest.disk, runtimePrograms());
    await rename(done, folder).catch(async (error: unknown) => {
      // Another run may have made the same guest meanwhile.
      if (!(await exists(folder))) throw error;
    });
    return ok(null);
  } finally {
    await rm(work, { recursive: true, force: true });
  }
}

async function prepare(): Promise<Result<Guest, GuestAbsent>> {
  const host = await checkHost();
  if (!host.ok) return host;
  const kernelPackage = await findKernelPackage();
  if (!kernelPackage.ok) return kernelPackage;
  const folder = join(tmpdir(), `nodewise-vm-${await inputKey(kernelPackage.value)}`);
  if (!(await exists(folder))) {
    const made = await make(kernelPackage.value, folder);
    if (!made.ok) return made;
  }
  const { uid } = await stat(folder);
  if (uid !== process.getuid?.()) throw new Error(`${folder} belongs to user ${uid}, not to this one: remove it`);
  return ok(guestIn(folder));
}

let prepared: Promise<Result<Guest, GuestAbsent>> | undefined;

/**
 * The guest for this machine's kernel package and node, made once and kept in the temporary folder (250 MB, about
 * 5 s; later calls cost under a second). Fails, as a value, where a program or the kernel package is absent.
 */
export function prepareGuest(): Promise<Result<Guest, GuestAbsent>> {
  prepared ??= prepare();
  return prepared;
}
