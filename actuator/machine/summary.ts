import type { MachineFacts } from "./facts.ts";
import { secondsText } from "./system.ts";

/**
 * The machine's part of the kubelet's /stats/summary (stats/v1alpha1); a section whose files could not be read is absent.
 * Per-pod use and the runtime's file systems are not the machine's to tell: `pods` is empty and `runtime` absent.
 */
export function summaryOf(machine: MachineFacts, nodeName: string) {
  const time = secondsText(new Date(machine.observedAt));
  const timed = <T extends object>(section: T | undefined) =>
    section === undefined ? undefined : { time, ...section };
  const { processes, system } = machine;
  const rlimit = processes.maxpid === undefined && processes.curproc === undefined ? undefined : processes;
  return {
    node: {
      nodeName,
      startTime: system.startTime,
      memory: timed(machine.memoryUsage),
      fs: timed(machine.nodeFs),
      rlimit: timed(rlimit),
      swap: timed(machine.swapUsage),
    },
    pods: [],
  };
}
