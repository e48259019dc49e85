import type { Processes } from "./facts.ts";
import type { MachineFiles } from "./files.ts";

const LOADAVG = "/proc/loadavg";

/** Process numbers in use and their limit (kubelet 1.36: pidlimit.Stats): the fourth field of loadavg counts threads. */
export function readProcesses(files: MachineFiles): Processes {
  const limits = [files.wholeNumber("/proc/sys/kernel/pid_max"), files.wholeNumber("/proc/sys/kernel/threads-max")];
  const known = limits.filter((limit) => limit !== undefined && limit >= 0) as number[];
  return { maxpid: known.length === 0 ? undefined : Math.min(...known), curproc: readTaskCount(files) };
}

/** `1.36 3.49 4.53 2/3518 3715089` */
function readTaskCount(files: MachineFiles): number | undefined {
  const text = files.text(LOADAVG);
  if (text === undefined) return undefined;
  const tasks = /^\S+ \S+ \S+ \d+\/(\d{1,9}) \d+$/.exec(text)?.[1];
  return tasks === undefined ? files.note(LOADAVG, "expected `running/all` as its fourth field") : Number(tasks);
}
