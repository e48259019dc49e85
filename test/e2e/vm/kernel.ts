import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { err, ok, type Result } from "../../../api/base/result.ts";
import { type GuestAbsent, run } from "./host.ts";

/** The Debian package that always depends on the newest small kernel for virtual machines. */
const META_PACKAGE = "linux-image-cloud-amd64";

/** A kernel package that apt knows and can download; it is unpacked, never installed. */
export type KernelPackage = { readonly name: string; readonly version: string };

export type Kernel = { readonly image: string; readonly modules: ReadonlyMap<string, string> };

/** Finds the kernel package behind `META_PACKAGE` with apt. */
export async function findKernelPackage(): Promise<Result<KernelPackage, GuestAbsent>> {
  const advice = `apt knows no ${META_PACKAGE}: run apt-get update on a Debian machine (.ci/apt does)`;
  const record = await run("apt-cache", ["show", "--no-all-versions", META_PACKAGE]).catch(() => "");
  const match = /^Depends: (linux-image-\S+) \(= (\S+)\)/m.exec(record);
  if (match?.[1] === undefined || match[2] === undefined) return err({ code: "kernel-package", message: advice });
  return ok({ name: match[1], version: match[2] });
}

/**
 * Downloads and unpacks a kernel package into `folder`; returns the path of its kernel image, and the path of each
 * module by name. A failed download is an expected error (no network, or outdated package lists); an unexpected package
 * content throws.
 */
export async function fetchKernel(wanted: KernelPackage, folder: string): Promise<Result<Kernel, GuestAbsent>> {
  try {
    await run("apt-get", ["-qq", "download", `${wanted.name}=${wanted.version}`], folder);
  } catch (error) {
    const found = String(error).replaceAll(/\s+/g, " ");
    const message = `apt-get download ${wanted.name}=${wanted.version} failed; run apt-get update: ${found}`;
    return err({ code: "kernel-package", message });
  }
  const archive = (await readdir(folder)).find((file) => file.endsWith(".deb"));
  if (archive === undefined) throw new Error(`apt-get download ${wanted.name} left no .deb in ${folder}`);
  const tree = join(folder, "kernel");
  await run("dpkg-deb", ["-x", join(folder, archive), tree]);
  const boot = await readdir(join(tree, "boot"));
  const image = boot.find((file) => file.startsWith("vmlinuz-"));
  if (image === undefined) throw new Error(`${archive} has no boot/vmlinuz-*, only ${boot.join(", ")}`);
  return ok({ image: join(tree, "boot", image), modules: await listModules(join(tree, "lib/modules")) });
}

async function listModules(folder: string): Promise<Map<string, string>> {
  const files = await readdir(folder, { recursive: true, withFileTypes: true });
  const modules = files.filter((file) => file.isFile() && file.name.endsWith(".ko"));
  return new Map(modules.map((file) => [file.name.slice(0, -".ko".length), join(file.parentPath, file.name)]));
}
