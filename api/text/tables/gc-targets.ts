import { CONTAINER_GC_TARGETS, type ContainerGcTarget, type ContainerRemoval } from "../../model/container-gc.ts";
import { listed } from "../sentences/words.ts";
import { printable } from "../style.ts";
import { podName } from "./verdict.ts";

/** What a container collection takes, in a word or two. */
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
export function whose({
  target,
  id,
  pod,
  name,
  attempt,
}: Pick<ContainerRemoval, "target" | "id" | "pod" | "name" | "attempt">): string {
  if (target === "pod-logs" || target === "log-link") return printable(id);
  const of = pod === null ? "(a pod that is not known)" : podName(pod);
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
