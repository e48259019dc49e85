import type { DeviceCheckpoint } from "../../../api/decide/devices/checkpoint.ts";
import { sharedDevices } from "../../../api/decide/devices/shared-devices.ts";
import type { DeviceConflict } from "../../../api/model/device-decision.ts";
import type { RunnablePod } from "../../lifecycle/pod.ts";
import type { Problem } from "../../ports.ts";
import type { DeviceBook } from "./book.ts";
import { entriesOf, idsOf } from "./held.ts";

/** What is wrong with who holds which devices. `leaks`: uids of pods that were gone when the daemon started. */
export function bookProblems(book: DeviceBook, leaks: ReadonlySet<string>): readonly Problem[] {
  const problem = (message: string): Problem => ({ from: "state-files", message });
  const fault = book.fault();
  if (fault !== null) {
    const place = fault.code === "unreadable" ? "" : `${book.file}: `;
    return [problem(`${place}${fault.message}; no device counts as held, until one is given out again`)];
  }
  const now = book.now();
  return [...overlapsOf(now), ...[...leaks].flatMap((uid) => leaksOf(now, uid))].map(problem);
}

const known = new WeakMap<DeviceCheckpoint, readonly string[]>();
function overlapsOf(now: DeviceCheckpoint): readonly string[] {
  const before = known.get(now);
  if (before !== undefined) return before;
  const overlaps = sharedDevices(now.entries).map(
    ({ resource, id, podUids }) => `device \`${id}\` of ${resource} is held by pods ${podUids.join(" and ")} at once`,
  );
  known.set(now, overlaps);
  return overlaps;
}

const leaksOf = (now: DeviceCheckpoint, uid: string): readonly string[] =>
  entriesOf(now, uid).map((entry) => {
    const { containerName, resourceName } = entry;
    const devices = `${idsOf(entry).length} devices of ${resourceName}`;
    return `${devices} are held by container ${containerName} of pod ${uid}, which is not on the node: they are taken back with the next decision`;
  });

/** Of a container that starts: two plugins want different things, and the first has its way. */
export function conflictText({ namespace, name }: RunnablePod, container: string, conflict: DeviceConflict): string {
  const { kind, name: what, kept, dropped } = conflict;
  // values may be secret
  return `container ${container} of pod ${namespace}/${name}: ${kind} \`${what}\` is that of ${kept.resource}, and not that of ${dropped.resource}`;
}
