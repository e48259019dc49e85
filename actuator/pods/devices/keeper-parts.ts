import type { DevicePluginHost } from "../../deviceplugin/host.ts";
import type { Problem } from "../../ports.ts";
import type { Counters } from "../../status/counters.ts";
import type { PodClock } from "../clock.ts";
import type { ManagerFiles } from "../manager-files.ts";
import { Allocator } from "./allocator.ts";
import { DeviceBook } from "./book.ts";
import { PluginCalls } from "./calls.ts";
import { DeviceChronicle } from "./chronicle.ts";
import { Conflicts } from "./conflicts.ts";
import type { DeviceHistory } from "./history.ts";
import { DeviceLosses } from "./losses.ts";
import { ChangePace } from "./pace.ts";
import type { PluginFaults } from "./plugin-faults.ts";
import { PluginLook } from "./plugin-look.ts";
import { Questions } from "./questions.ts";
import { CheckpointUpkeep } from "./upkeep.ts";

export interface DeviceKeeperPorts {
  readonly host: DevicePluginHost;
  readonly files: ManagerFiles;
  readonly clock: PodClock;
  /** Of the machine; empty: not known, so that every start counts as one of the machine. */
  readonly bootId: string;
  /** How long a pod waits for a plugin that has not come since the daemon's start. */
  readonly waitMs: number;
  readonly history: DeviceHistory;
  readonly faults: PluginFaults;
  readonly counters: Pick<Counters, "deviceAllocated" | "devicePluginRegistered">;
  /** What is told once, and does not stand. */
  readonly onProblem: (problem: Problem) => void;
}
/** What a keeper is made of. */
export interface KeeperParts {
  readonly book: DeviceBook;
  readonly plugins: PluginLook;
  readonly pace: ChangePace;
  readonly questions: Questions;
  readonly allocator: Allocator;
  readonly chronicle: DeviceChronicle;
  readonly calls: PluginCalls;
  readonly losses: DeviceLosses;
  readonly conflicts: Conflicts;
  readonly upkeep: CheckpointUpkeep;
}

/** A checkpoint that cannot be read is put aside first. */
export function keeperParts(ports: DeviceKeeperPorts): KeeperParts {
  const { host, files, clock, bootId, waitMs, history, counters, onProblem } = ports;
  const onTold = (message: string): void => onProblem({ from: "devices", message });
  const book = new DeviceBook(files);
  const plugins = new PluginLook({ host, book, clock, waitMs });
  const pace = new ChangePace(clock);
  const chronicle = new DeviceChronicle({ host, book, history, counters, clock });
  const calls = new PluginCalls(clock);
  const losses = new DeviceLosses(book, onTold, (entries) => chronicle.bookedAgain(entries));
  const upkeep = new CheckpointUpkeep({ book, files, clock, bootId });
  if (upkeep.broken !== null) {
    onTold(upkeep.broken);
    chronicle.lost(upkeep.broken);
  }
  const allocator = new Allocator({
    host,
    book,
    plugins,
    calls,
    onLacking: (pod, container, why) => losses.lacks(pod, container, why),
    waitMs,
    counters,
    onRefused: (pod, resource, fault) => chronicle.refused(pod, resource, fault),
  });
  const questions = new Questions(host, () => pace.changed());
  const conflicts = new Conflicts(onProblem);
  return { book, plugins, pace, questions, allocator, chronicle, calls, losses, conflicts, upkeep };
}
