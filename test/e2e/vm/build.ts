import { createHash } from "node:crypto";
import { access, copyFile, mkdir, mkdtemp, readFile, rename, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ok, type Result } from "../../../api/base/result.ts";
import { containerPrograms } from "../containerd/programs.ts";
import { checkHost, type GuestAbsent, toolPath } from "./host.ts";
import { makeTree, writeDisk, writeInitramfs } from "./image.ts";
import { fetchKernel, findKernelPackage, type KernelPackage } from "./kernel.ts";
import { addPackages, LOCK_FILE } from "./project.ts";
import { addSystemd, findSystemdPackages, type SystemdPackages } from "./systemd.ts";

/** The three files from which a virtual machine starts; they never change after they are made. */
export type Guest = { readonly kernel: string; readonly initramfs: string; readonly disk: string };

/**
 * `plain`: a short shell script starts the job. `systemd`: Debian's systemd starts the job, and the project's packages
 * are installed.
 */
export type GuestKind = "plain" | "systemd";
type Inputs = { readonly kernel: KernelPackage; readonly systemd: SystemdPackages | null };

/** The source files of the guest: a change in one of them makes a new guest. */
const RECIPE = ["build.ts", "cpio.ts", "host.ts", "image.ts", "init.sh", "job.sh", "kernel.ts", "start.sh"].map(
  (name) => join(import.meta.dirname, name),
);
const SYSTEMD_RECIPE = [...["project.ts", "systemd.ts"].map((name) => join(import.meta.dirname, name)), LOCK_FILE];

async function describeFile(path: string): Promise<string> {
  const { size, mtimeMs } = await stat(path);
  return `${path} ${size} ${mtimeMs}`;
}

/**
 * The programs of a container runtime. A guest is made without them if they are missing: only jobs that run containers
 * need them.
 */
function runtimePrograms(): readonly string[] {
  const programs = containerPrograms();
  return "missing" in programs ? [] : programs.all;
}

/** A hash of everything that goes into the guest. */
async function inputKey({ kernel, systemd }: Inputs): Promise<string> {
  const hash = createHash("sha256");
  const recipe = systemd === null ? RECIPE : [...RECIPE, ...SYSTEMD_RECIPE];
  for (const file of recipe) hash.update(await readFile(file)).update("\0");
  hash.update(`${kernel.name} ${kernel.version} ${systemd?.version}\0`);
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

/** Makes the guest beside the cache and then renames it, so that a half-made guest is never visible. */
async function make({ kernel: kernelPackage, systemd }: Inputs, folder: string): Promise<Result<null, GuestAbsent>> {
  const work = await mkdtemp(`${folder}-making-`);
  try {
    const kernel = await fetchKernel(kernelPackage, work);
    if (!kernel.ok) return kernel;
    const done = join(work, "done");
    await mkdir(done, { mode: 0o700 });
    const guest = guestIn(done);
    await copyFile(kernel.value.image, guest.kernel);
    await writeInitramfs(kernel.value, guest.initramfs);
    const tree = await makeTree(work, runtimePrograms());
    if (systemd !== null) {
      const added = await addSystemd(systemd, work, tree);
      if (!added.ok) return added;
      await addPackages(tree);
    }
    await writeDisk(tree, guest.disk);
    await rename(done, folder).catch(async (error: unknown) => {
      // Another process may have made the same guest meanwhile.
      if (!(await exists(folder))) throw error;
    });
    return ok(null);
  } finally {
    await rm(work, { recursive: true, force: true });
  }
}

async function prepare(kind: GuestKind): Promise<Result<Guest, GuestAbsent>> {
  const host = await checkHost();
  if (!host.ok) return host;
  const kernel = await findKernelPackage();
  if (!kernel.ok) return kernel;
  const systemd = kind === "plain" ? ok(null) : await findSystemdPackages();
  if (!systemd.ok) return systemd;
  const inputs = { kernel: kernel.value, systemd: systemd.value };
  const folder = join(tmpdir(), `nodewise-vm-${await inputKey(inputs)}`);
  if (!(await exists(folder))) {
    const made = await make(inputs, folder);
    if (!made.ok) return made;
  }
  const { uid } = await stat(folder);
  if (uid !== process.getuid?.()) throw new Error(`${folder} belongs to user ${uid}, not to this one: remove it`);
  return ok(guestIn(folder));
}

const prepared = new Map<GuestKind, Promise<Result<Guest, GuestAbsent>>>();

/**
 * The guest for this machine's kernel package and Node, made once and kept in the temporary folder (250 MB, with
 * systemd 400 MB; about 5 s; later calls take less than a second). Returns an error if a program or a package is
 * missing.
 */
export function prepareGuest(kind: GuestKind = "plain"): Promise<Result<Guest, GuestAbsent>> {
  const known = prepared.get(kind) ?? prepare(kind);
  prepared.set(kind, known);
  return known;
}
