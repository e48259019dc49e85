import type { ContainerEnd, ContainerRow } from "../status/node-status.ts";
import { type Fields, fieldsOf, listOf, textOf } from "./fields.ts";

/**
 * Of a v1.PodSpec and a v1.PodStatus, init containers first; a status of null is one that nobody has seen. `cpusets`:
 * container's name -> its CPUs as decided.
 */
export function containerRows(
  spec: unknown,
  status: unknown,
  cpusets: ReadonlyMap<string, string>,
): readonly ContainerRow[] {
  const { initContainers, containers } = fieldsOf(spec);
  const { initContainerStatuses, containerStatuses } = fieldsOf(status);
  const statuses = new Map([...listOf(initContainerStatuses), ...listOf(containerStatuses)].map((s) => [s["name"], s]));
  const rowOf = (container: Fields, kind: ContainerRow["kind"]): ContainerRow =>
    containerRow(container, kind, status === null ? null : (statuses.get(container["name"]) ?? {}), cpusets);
  return [
    ...listOf(initContainers).map((c) => rowOf(c, c["restartPolicy"] === "Always" ? "sidecar" : "init")),
    ...listOf(containers).map((c) => rowOf(c, "container")),
  ];
}

function containerRow(
  { name, image }: Fields,
  kind: ContainerRow["kind"],
  seen: Fields | null,
  cpusets: ReadonlyMap<string, string>,
): ContainerRow {
  const status = seen ?? {};
  const { terminated, waiting } = fieldsOf(status["state"]);
  const told = fieldsOf(terminated ?? waiting);
  const { restartCount, containerID } = status;
  return {
    name: textOf(name),
    kind,
    id: textOf(containerID).replace(/^[a-z-]+:\/\//, "") || null,
    state: seen === null ? "unknown" : stateOf(fieldsOf(status["state"])),
    reason: textOf(told["reason"]),
    message: textOf(told["message"]),
    exitCode: typeof told["exitCode"] === "number" ? told["exitCode"] : null,
    lastState: endOf(fieldsOf(status["lastState"])["terminated"]),
    restarts: typeof restartCount === "number" ? restartCount : 0,
    ready: status["ready"] === true,
    started: status["started"] === true,
    image: textOf(image),
    cpuset: cpusets.get(textOf(name)) ?? null,
  };
}

const stateOf = ({ running, terminated }: Fields): ContainerRow["state"] =>
  running !== undefined ? "running" : terminated !== undefined ? "terminated" : "waiting";

function endOf(terminated: unknown): ContainerEnd | null {
  const { exitCode, reason, message, finishedAt } = fieldsOf(terminated);
  if (typeof exitCode !== "number") return null;
  const at = textOf(finishedAt);
  return {
    exitCode,
    reason: textOf(reason),
    message: textOf(message),
    // a runtime that does not know tells the beginning of time
    finishedAt: Date.parse(at) > 0 ? at : null,
  };
}
