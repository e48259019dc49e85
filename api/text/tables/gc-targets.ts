import {
  CONTAINER_GC_TARGETS,
  type ContainerGcTarget,
  type ContainerRemoval,
  type NodeEvent,
  type RemovalState,
} from "../../model/container-gc.ts";
import { listed } from "../sentences/words.ts";
import { type Color, type Paint, printable } from "../style.ts";
import type { Cell } from "../table.ts";
import { podName } from "./shown.ts";

const END_COLOR: Readonly<Record<RemovalState, Color>> = {
  planned: "dim",
  removed: "green",
  failed: "red",
  stopped: "yellow",
};
interface Removal {
  readonly tie: boolean;
  readonly end: RemovalState;
  readonly message?: string;
}

/** The marks of a removal beside its reason; a removal that is only planned has no mark. */
export function removalMarks({ tie, end }: Removal, ...others: readonly string[]): Cell {
  const marks = [...(end === "planned" ? [] : [end]), ...others, ...(tie ? ["tie"] : [])];
  return { text: marks.join(", "), color: end === "planned" && tie ? "yellow" : END_COLOR[end] };
}

/** The runtime's words, as a line below the row. */
export const removalNotes = ({ message }: Removal): readonly string[] =>
  message === undefined ? [] : [`  ${printable(message)}`];

/** Lists the events that the kubelet would record for its node, a line each; `above`: a message that is already shown. */
export const eventLines = (events: readonly NodeEvent[], paint: Paint, above: string | null): string =>
  events
    .map(({ type, reason, message }) => {
      const text = message === above ? `${reason} with this message` : `${reason}: ${message}`;
      return paint(type === "Warning" ? "yellow" : "dim", `event ${printable(text)}\n`);
    })
    .join("");

/** A line that says that the kubelet's order is partly random; empty: it is not. */
export const tieLine = (removals: readonly Removal[], paint: Paint): string =>
  removals.some(({ tie }) => tie)
    ? paint("dim", "tie: equal in everything that the kubelet sorts by; its order is random, here it is by id\n")
    : "";

/** The targets of a container collection, in a word or two. */
export const TARGET: Readonly<Record<ContainerGcTarget, string>> = {
  container: "container",
  sandbox: "sandbox",
  "pod-logs": "pod's logs",
  "log-link": "log link",
};
const COUNTED: Readonly<Record<ContainerGcTarget, readonly [one: string, many: string]>> = {
  container: ["container", "containers"],
  sandbox: ["sandbox", "sandboxes"],
  "pod-logs": ["log directory", "log directories"],
  "log-link": ["log link", "log links"],
};
/** `3 containers, 1 sandbox and 2 log directories`. */
export function countsText(removals: readonly { readonly target: ContainerGcTarget }[]): string {
  const counts = CONTAINER_GC_TARGETS.map((of) => [of, removals.filter(({ target }) => target === of).length] as const);
  return listed(counts.flatMap(([of, count]) => (count === 0 ? [] : [`${count} ${COUNTED[of][count === 1 ? 0 : 1]}`])));
}

/** The pod, and of a container its name and attempt; of logs the name that they have on the disk. */
export function ownerText({
  target,
  id,
  pod,
  name,
  attempt,
}: Pick<ContainerRemoval, "target" | "id" | "pod" | "name" | "attempt">): string {
  if (target === "pod-logs" || target === "log-link") return printable(id);
  const of = pod === null ? "(unknown pod)" : podName(pod);
  const restarts = attempt === null || attempt === 0 ? "" : ` #${attempt}`;
  return name === null ? `${of}${restarts}` : `${of} ${printable(name)}${restarts}`;
}
/** `CONTAINER_EXITED` -> `exited`, `SANDBOX_NOTREADY` -> `not ready`. */
export const stateText = (state: ContainerRemoval["state"]): string =>
  state === null
    ? ""
    : state
        .replace(/^[A-Z]+_/, "")
        .toLowerCase()
        .replace("notready", "not ready");
