import { existsSync } from "node:fs";
import { mkdir, readdir, rm, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { err, ok, type Result } from "../../../api/base/result.ts";
import { type GuestAbsent, run } from "./host.ts";

/** Debian's systemd and its libraries in the version that apt offers; they are unpacked, never installed. */
export type SystemdPackages = { readonly names: readonly string[]; readonly version: string };

/** Of the packages on which systemd depends, only these contain programs or libraries that it loads. */
const WANTED = /^(?:systemd|mount|zlib1g|lib[a-z0-9.+-]+)$/;
const ONLY_NEEDED = ["recommends", "suggests", "conflicts", "breaks", "replaces", "enhances"].map(
  (kind) => `--no-${kind}`,
);
/** The directories with links to the units of a normal boot: this guest needs only a journal and what a job starts. */
const LEFT_OUT = /^(?!sockets\.).*\.wants$/;
const UNITS = ["lib/systemd/system", "usr/lib/systemd/system"];

/** The guest's job as a service; its output goes to the console, as without systemd. */
const JOB = `[Unit]
Description=The job of this machine
[Service]
Type=exec
ExecStart=/bin/sh /sbin/job
StandardOutput=tty
StandardError=tty
TTYPath=/dev/console
`;

/** Finds systemd and its libraries with apt. */
export async function findSystemdPackages(): Promise<Result<SystemdPackages, GuestAbsent>> {
  const record = await run("apt-cache", ["show", "--no-all-versions", "systemd"]).catch(() => "");
  const version = /^Version: (\S+)/m.exec(record)?.[1];
  const listed = await run("apt-cache", ["depends", "--recurse", ...ONLY_NEEDED, "systemd"]).catch(() => "");
  const names = [...new Set(listed.split("\n").filter((line) => WANTED.test(line)))].sort();
  if (version !== undefined && names.length > 1) return ok({ names, version });
  const message = "apt knows no systemd: run apt-get update on a Debian machine (.ci/apt does)";
  return err({ code: "systemd-package", message });
}

/**
 * Downloads and unpacks the packages into the guest's tree. A failed download is an expected error, as for the kernel.
 */
export async function addSystemd(
  { names }: SystemdPackages,
  folder: string,
  tree: string,
): Promise<Result<null, GuestAbsent>> {
  const packages = join(folder, "packages");
  await mkdir(packages);
  try {
    await run("apt-get", ["-qq", "download", ...names], packages);
  } catch (error) {
    const message = `apt-get download systemd failed; run apt-get update: ${String(error).replaceAll(/\s+/g, " ")}`;
    return err({ code: "systemd-package", message });
  }
  for (const file of await readdir(packages)) await run("dpkg-deb", ["-x", join(packages, file), tree]);
  await rm(join(tree, "usr/share"), { recursive: true });
  await trim(tree);
  await makeFirst(tree);
  return ok(null);
}

/** Removes the units that a complete machine also starts, because most of their programs do not exist in the guest. */
async function trim(tree: string): Promise<void> {
  for (const units of UNITS) {
    const found = await readdir(join(tree, units)).catch(() => []);
    for (const name of found.filter((one) => LEFT_OUT.test(one)))
      await rm(join(tree, units, name), { recursive: true });
    await rm(join(tree, units, "../system-generators"), { recursive: true, force: true });
  }
}

async function makeFirst(tree: string): Promise<void> {
  const systemd = UNITS.map((units) => join(units, "../systemd")).find((path) => existsSync(join(tree, path)));
  if (systemd === undefined) throw new Error("package systemd has no systemd/systemd in /lib or /usr/lib");
  await rm(join(tree, "sbin/start"));
  await symlink(join("/", systemd), join(tree, "sbin/start"));
  const own = join(tree, "etc/systemd/system");
  await mkdir(join(own, "multi-user.target.wants"), { recursive: true });
  await writeFile(join(own, "job.service"), JOB);
  await symlink("../job.service", join(own, "multi-user.target.wants/job.service"));
  await symlink(join("/", systemd, "../system/multi-user.target"), join(own, "default.target"));
  await writeFile(join(tree, "etc/machine-id"), `${"0123456789abcdef".repeat(2)}\n`);
  await writeFile(join(tree, "etc/hostname"), "guest\n");
}
