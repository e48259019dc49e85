import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { setPriority, tmpdir } from "node:os";
import { join } from "node:path";
import { type Guest, type GuestKind, prepareGuest } from "./build.ts";
import { cpioArchive, fileEntries } from "./cpio.ts";
import { toolPath } from "./host.ts";

export type GuestJob = {
  /**
   * The content of files by absolute path in the guest (not below /proc, /sys and /dev); all files except those below
   * /etc are executable.
   */
  readonly files: Readonly<Record<string, Uint8Array | string>>;
  /** Program and arguments; PATH contains `node` and busybox's programs. */
  readonly command: readonly string[];
  /** From the machine's first output to its end. JavaScript runs about four times slower in the guest. */
  readonly timeoutMs: number;
  readonly memoryMb?: number;
  readonly cpus?: number;
  /** Every two processors are threads of one core. */
  readonly isHyperThreaded?: boolean;
  /** Default `plain`. With `systemd`, the command runs in its own service. */
  readonly guest?: GuestKind;
};

export type GuestResult = {
  readonly exitCode: number;
  /** Everything that the command wrote to stdout and stderr. */
  readonly stdout: string;
  readonly durationMs: number;
};

const KERNEL_LINE = [
  "console=ttyS0 quiet panic=-1 rdinit=/init cgroup_no_v1=all hugepagesz=2M hugepages=8",
  // on a busy host emulated timers are late: without these options, the kernel panics or changes from its fast clock to
  // a slow one
  "no_timer_check tsc=reliable",
  // mitigations of speculative execution cost much, and an emulated processor does not speculate
  "mitigations=off",
  // mitigations of attacks cost much, and there are no attackers; without address randomization, the next process
  // reuses translated code
  "norandmaps nokaslr init_on_alloc=0 hardened_usercopy=off audit=0",
].join(" ");

/**
 * The guest's clock counts the ticks of this machine's processor. On a busy machine, the kernel would measure a rate
 * that is many times too low, and all its timeouts would be too short by the same factor.
 */
function tickRate(): string {
  const [, bogoMips] = /^bogomips\s*: ([\d.]+)$/m.exec(readFileSync("/proc/cpuinfo", "utf8")) ?? [];
  // bogomips is twice the frequency
  return bogoMips === undefined ? "" : `tsc_early_khz=${Math.round(Number(bogoMips) * 500)}`;
}
/** Features that are expensive to emulate and that no job needs: with them, a guest takes a quarter longer. */
const WITHOUT = "-la57,-avx,-avx2,-smap,-smep,-pku";
const OUTPUT = /^=== job begins ===\n(?<stdout>.*)\n=== job ended with exit code (?<code>\d+) ===$/ms;

function qemuArguments(guest: Guest, initramfs: string, job: GuestJob): string[] {
  return [
    // Not KVM: on some machines it opens but hangs. Not one thread per processor: QEMU 7.2 then sometimes keeps running
    // code that the kernel has patched, and never ends. The first write to cpu.max patches code.
    ...["-accel", "tcg,thread=single,tb-size=512", "-m", String(job.memoryMb ?? 512)],
    ...processors(job),
    ...["-nographic", "-no-reboot", "-net", "none"],
    ...["-kernel", guest.kernel, "-initrd", initramfs, "-append", `${KERNEL_LINE} ${tickRate()}`],
    // QEMU discards the guest's writes to its disk, so that many guests can share it.
    ...["-drive", `file=${guest.disk},format=raw,if=virtio,snapshot=on`],
  ];
}

/** QEMU reports the threads of a core only for a processor with another vendor's name than its own. */
function processors({ cpus = 2, isHyperThreaded = false }: GuestJob): string[] {
  if (!isHyperThreaded) return ["-cpu", `max,${WITHOUT}`, "-smp", String(cpus)];
  return ["-cpu", `max,vendor=GenuineIntel,${WITHOUT}`, "-smp", `${cpus},sockets=1,cores=${cpus / 2},threads=2`];
}

/**
 * Raises the priority of the guest. Its clock continues while it waits for a processor, so a guest that gets processors
 * earlier finishes with less work.
 */
function raisePriority(pid: number | undefined): void {
  try {
    if (pid !== undefined) setPriority(pid, -4);
  } catch {
    // only root can raise the priority
  }
}

type Captured = { readonly text: string; readonly pid: number | undefined; readonly killed: boolean };

/** The longest time in which a program on a busy machine may print nothing at its start. */
const SILENT_MS = 120_000;

/**
 * Starts a program, waits for its exit and returns its output. Kills it `timeoutMs` after its first output, if it
 * prints nothing, or when this process exits.
 */
async function capture(program: string, args: string[], timeoutMs: number): Promise<Captured> {
  const child = spawn(program, args, { stdio: ["ignore", "pipe", "pipe"] });
  raisePriority(child.pid);
  const end = () => child.kill("SIGKILL");
  process.once("exit", end);
  let timer = setTimeout(end, SILENT_MS + timeoutMs);
  child.stdout.once("data", () => {
    clearTimeout(timer);
    timer = setTimeout(end, timeoutMs);
  });
  const chunks: Buffer[] = [];
  child.stdout.on("data", (chunk: Buffer) => chunks.push(chunk));
  child.stderr.on("data", (chunk: Buffer) => chunks.push(chunk));
  try {
    await new Promise((resolve, reject) => child.once("close", resolve).once("error", reject));
    return { text: Buffer.concat(chunks).toString().replaceAll("\r", ""), pid: child.pid, killed: child.killed };
  } finally {
    clearTimeout(timer);
    process.removeListener("exit", end);
  }
}

function lastLines(text: string): string {
  return text.trimEnd().split("\n").slice(-25).join("\n");
}

/**
 * Runs one command in a fresh virtual machine with a cgroup v2 hierarchy at /sys/fs/cgroup. The controllers cpu,
 * memory, cpuset, io, pids and hugetlb (8 pages of 2 MiB) are enabled below its root, and the command runs in the
 * cgroup /leaf; with systemd, systemd chooses the enabled controllers and the command's cgroup. Throws with the last
 * lines of the console if the machine ends without an exit code or does not end within `timeoutMs`.
 */
export async function runInGuest(job: GuestJob): Promise<GuestResult> {
  const guest = await prepareGuest(job.guest);
  if (!guest.ok) throw new Error(`no guest on this machine: ${guest.error.message}`);
  if (job.command.length === 0 || job.command.some((argument) => /[\n\0]/.test(argument))) {
    throw new Error(
      `command ${JSON.stringify(job.command)} is empty or has a line break: put it into a file of the job`,
    );
  }
  const files = {
    ...job.files,
    "/command": job.command.map((argument) => `${argument}\n`).join(""),
    "/timeout-seconds": `${Math.ceil(job.timeoutMs / 1000)}\n`,
  };
  const folder = await mkdtemp(join(tmpdir(), "nodewise-vm-run-"));
  try {
    const initramfs = join(folder, "initramfs");
    await writeFile(initramfs, [await readFile(guest.value.initramfs), cpioArchive(fileEntries("files", files))]);
    const started = performance.now();
    const args = qemuArguments(guest.value, initramfs, job);
    const { text, pid, killed } = await capture(toolPath("qemu-system-x86_64"), args, job.timeoutMs);
    const durationMs = Math.round(performance.now() - started);
    const output = OUTPUT.exec(text)?.groups;
    if (output?.["stdout"] !== undefined) {
      return { exitCode: Number(output["code"]), stdout: output["stdout"], durationMs };
    }
    const end = killed ? `was ended after ${job.timeoutMs} ms` : "stopped without an exit code";
    throw new Error(
      `the guest (process ${pid}) with \`${job.command.join(" ")}\` ${end}; its last lines:\n${lastLines(text)}`,
    );
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}
