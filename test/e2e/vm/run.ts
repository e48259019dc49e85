import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { setPriority, tmpdir } from "node:os";
import { join } from "node:path";
import { type Guest, type GuestKind, prepareGuest } from "./build.ts";
import { cpioArchive, fileEntries } from "./cpio.ts";
import { toolPath } from "./host.ts";

export type GuestJob = {
  /** Contents by absolute path in the guest (not below /proc, /sys and /dev); all but those below /etc may be executed. */
  readonly files: Readonly<Record<string, Uint8Array | string>>;
  /** Program and arguments; `node` and busybox's programs are on the path. */
  readonly command: readonly string[];
  /** From the machine's first words to its end. JavaScript runs about four times slower in it. */
  readonly timeoutMs: number;
  readonly memoryMb?: number;
  readonly cpus?: number;
  /** Each two of them are threads of one core. */
  readonly isHyperThreaded?: boolean;
  /** Default `plain`. With `systemd` the command runs in a service of its own. */
  readonly guest?: GuestKind;
};

export type GuestResult = {
  readonly exitCode: number;
  /** All that the command wrote to stdout and stderr. */
  readonly stdout: string;
  readonly durationMs: number;
};

const KERNEL_LINE = [
  "console=ttyS0 quiet panic=-1 rdinit=/init cgroup_no_v1=all hugepagesz=2M hugepages=8",
  // for a busy host, on which emulated timers are late: the kernel would panic, or leave its fast clock for a slow one
  "no_timer_check tsc=reliable",
  // guards against what a processor guesses cost much where none guesses
  "mitigations=off",
  // so do guards against attackers, of whom there are none; and what is translated at an address is of use to the next process
  "norandmaps nokaslr init_on_alloc=0 hardened_usercopy=off audit=0",
].join(" ");

/**
 * The guest's clock counts the ticks of this machine's processor. On a busy machine the kernel would measure many times too few a
 * second, and all its time limits would be as many times too short.
 */
function tickRate(): string {
  const [, bogoMips] = /^bogomips\s*: ([\d.]+)$/m.exec(readFileSync("/proc/cpuinfo", "utf8")) ?? [];
  // twice the frequency
  return bogoMips === undefined ? "" : `tsc_early_khz=${Math.round(Number(bogoMips) * 500)}`;
}
/** Features that cost much to emulate and that no job needs: with them a guest takes a quarter longer. */
const WITHOUT = "-la57,-avx,-avx2,-smap,-smep,-pku";
const OUTPUT = /^=== job begins ===\n(?<stdout>.*)\n=== job ended with exit code (?<code>\d+) ===$/ms;

function qemuArguments(guest: Guest, initramfs: string, job: GuestJob): string[] {
  return [
    // Not KVM: it opens but hangs on some machines. Not a thread for each processor: QEMU 7.2 then now and then goes on
    // running code that the kernel has patched, and never ends; the first write to cpu.max patches some.
    ...["-accel", "tcg,thread=single,tb-size=512", "-m", String(job.memoryMb ?? 512)],
    ...processors(job),
    ...["-nographic", "-no-reboot", "-net", "none"],
    ...["-kernel", guest.kernel, "-initrd", initramfs, "-append", `${KERNEL_LINE} ${tickRate()}`],
    // The guest's writes to its disk are thrown away, so that many can share it.
    ...["-drive", `file=${guest.disk},format=raw,if=virtio,snapshot=on`],
  ];
}

/** QEMU tells no threads of processors that it calls by its own name. */
function processors({ cpus = 2, isHyperThreaded = false }: GuestJob): string[] {
  if (!isHyperThreaded) return ["-cpu", `max,${WITHOUT}`, "-smp", String(cpus)];
  return ["-cpu", `max,vendor=GenuineIntel,${WITHOUT}`, "-smp", `${cpus},sockets=1,cores=${cpus / 2},threads=2`];
}

/** A guest's clock ticks on while it waits for a processor: one that comes a little before others is through with less work. */
function hurry(pid: number | undefined): void {
  try {
    if (pid !== undefined) setPriority(pid, -4);
  } catch {
    // only root may
  }
}

type Captured = { readonly text: string; readonly pid: number | undefined; readonly killed: boolean };

/** A program on a busy machine may take so long to say something. */
const SILENT_MS = 120_000;

/**
 * Starts a program, waits for its end and returns its output; kills it `timeoutMs` after its first words, when it says
 * nothing, or when this process ends.
 */
async function capture(program: string, args: string[], timeoutMs: number): Promise<Captured> {
  const child = spawn(program, args, { stdio: ["ignore", "pipe", "pipe"] });
  hurry(child.pid);
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
 * Runs one command in a fresh virtual machine with a cgroup v2 hierarchy at /sys/fs/cgroup: the controllers cpu, memory,
 * cpuset, io, pids and hugetlb (8 pages of 2 MiB) are enabled below its root, and the command runs in the cgroup /leaf (with
 * systemd: those that it enables, and where it puts services).
 * Throws, with the last lines of the console, when the machine ends without an exit code or not within `timeoutMs`.
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
