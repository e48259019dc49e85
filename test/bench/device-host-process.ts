import { openDevicePluginHost } from "../../actuator/deviceplugin/host.ts";

/** The figures that the host's process sends whenever it is asked. */
export interface HostFigures {
  /** CPU time since the start, in microseconds, of the event loop's thread and of all threads. */
  readonly loopMicros: number;
  readonly cpuMicros: number;
  readonly rssBytes: number;
  /** Memory in use after a garbage collection: heap and buffers. */
  readonly heldBytes: number;
  readonly devices: number;
  readonly healthy: number;
  readonly flips: number;
  readonly changes: number;
  readonly faults: readonly string[];
}

const dir = process.argv[2] ?? "";
const faults: string[] = [];
const opened = await openDevicePluginHost({ dir });
if (!opened.ok) throw new Error(opened.error);
const host = opened.value;
host.onFault(({ message }) => faults.push(message));
let changes = 0;
/** CPU time of the garbage collections that this process forces; it is subtracted from what the host used. */
const collected = { loop: 0, cpu: 0 };
host.onChange(() => changes++);
// a daemon reads the same in each turn
setInterval(() => [host.devices(), host.plugins(), host.amounts()], 1_000);

const used = () => {
  const [loop, cpu] = [process.threadCpuUsage(), process.cpuUsage()];
  return { loop: loop.user + loop.system, cpu: cpu.user + cpu.system };
};

process.on("message", () => {
  const { rss } = process.memoryUsage();
  const before = used();
  const { loop, cpu } = { loop: before.loop - collected.loop, cpu: before.cpu - collected.cpu };
  (globalThis as { readonly gc?: () => void }).gc?.();
  const after = used();
  collected.loop += after.loop - before.loop;
  collected.cpu += after.cpu - before.cpu;
  const { heapUsed, external } = process.memoryUsage();
  const amounts = [...host.amounts().values()];
  const figures: HostFigures = {
    loopMicros: loop,
    cpuMicros: cpu,
    rssBytes: rss,
    heldBytes: heapUsed + external,
    devices: amounts.reduce((sum, { capacity }) => sum + capacity, 0),
    healthy: amounts.reduce((sum, { allocatable }) => sum + allocatable, 0),
    flips: host.states().reduce((sum, { flips }) => sum + flips, 0),
    changes,
    faults,
  };
  process.send?.(figures);
});
process.on("disconnect", () => process.exit());
process.send?.("serves");
