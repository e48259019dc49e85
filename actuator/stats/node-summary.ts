import type { ImageFileSystems } from "../containerd/file-systems.ts";
import type { MachineFacts } from "../machine/facts.ts";

/**
 * The machine's part of the kubelet's /stats/summary (stats/v1alpha1); a section whose files could not be read is absent.
 * Per-pod use is not the machine's to tell: `pods` is empty. Times are to the millisecond: two looks within a second are
 * two, and only what is newer than before is believed.
 */
export function summaryOf(machine: MachineFacts, nodeName: string, images?: ImageFileSystems) {
  const time = machine.observedAt;
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
      runtime: images?.imageFs && { imageFs: images.imageFs, containerFs: images.containerFs },
      rlimit: timed(rlimit),
      swap: timed(machine.swapUsage),
      fileSystems: images?.fileSystems,
    },
    pods: [],
  };
}
