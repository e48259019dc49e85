import { isExtended, tellsDevices } from "../../decide/allocatable/capacity.ts";
import { askedPod } from "../../decide/managers/node.ts";
import { milliValue } from "../../model/amount.ts";
import type { AskOf, Kind } from "../../model/decision.ts";
import { traitsOf } from "../../model/kinds.ts";
import type { Snapshot } from "../../model/snapshot.ts";
import { listed } from "../../text/sentences/words.ts";

/** A machine of a file or of the library, beside a node that has another: a line for a person. */
export function otherMachine(file: string, { node, machine }: Snapshot): readonly string[] {
  const [told, cpus] = [node?.status?.capacity?.["cpu"], machine?.cpus?.length];
  if (told === undefined || cpus === undefined || milliValue(told.amount) === cpus * 1000) return [];
  return [
    `--machine ${file} has ${cpus} CPUs, and node ${node?.metadata.name} ${told.text} (status.capacity): is it that of another?`,
  ];
}

/** A pod that asks for devices where nobody told of any: a line for a person. */
export function missingDevices(kind: Kind, snapshot: Snapshot, ask: AskOf[Kind]): readonly string[] {
  if (!traitsOf(kind).assumesNoDevices || tellsDevices(snapshot)) return [];
  const pod = askedPod(snapshot, ask as AskOf["topology"]);
  if (!pod.ok || pod.value === null) return [];
  const { initContainers = [], containers } = pod.value.spec;
  const wanted = [...initContainers, ...containers].flatMap(({ resources }) => Object.keys(resources?.requests ?? {}));
  // what the node's status tells is counted at the door
  const told = kind === "admission" ? (snapshot.node?.status?.allocatable ?? {}) : {};
  const devices = [...new Set(wanted)].filter((name) => isExtended(name) && !Object.hasOwn(told, name)).sort();
  if (devices.length === 0) return [];
  return [`no devices are given, and the pod asks for ${listed(devices)}: decided without them; give --devices`];
}
