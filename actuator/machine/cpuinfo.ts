import { LIMITS } from "../../api/model/limits.ts";
import type { MachineFiles } from "./files.ts";

/** A CPU's place as the kernel numbers it: `kernelCore` repeats in every socket. */
export interface CpuPlace {
  readonly cpu: number;
  readonly kernelCore: number;
  readonly socket: number;
}

const CPUINFO = "/proc/cpuinfo";

/**
 * CPUs from /proc/cpuinfo, which lists those that are online, for machines that hide /sys. Where it names no core or
 * socket (arm64 never does) every CPU is a core of its own in socket 0.
 */
export function placesFromCpuinfo(files: MachineFiles): readonly CpuPlace[] {
  const text = files.text(CPUINFO);
  if (text === undefined) return [];
  const places = text.split(/\n\s*\n/).flatMap((block) => placeOf(block) ?? []);
  if (places.length === 0) files.note(CPUINFO, "lists no processor");
  return places.slice(0, LIMITS.cpus);
}

function placeOf(block: string): CpuPlace | undefined {
  const field = (name: string): number | undefined => {
    const digits = new RegExp(`^${name}\\s*:\\s*(\\d{1,6})$`, "m").exec(block)?.[1];
    return digits === undefined ? undefined : Number(digits);
  };
  const cpu = field("processor");
  if (cpu === undefined) return undefined;
  return { cpu, kernelCore: field("core id") ?? cpu, socket: field("physical id") ?? 0 };
}
