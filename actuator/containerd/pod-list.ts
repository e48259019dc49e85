import { ok } from "../../api/model/result.ts";
import type { RuntimeContainer, RuntimePods } from "../lifecycle/runtime-pod.ts";
import { askEach, nullIfGone } from "./at-once.ts";
import type { Connection } from "./connection.ts";
import { faultText, isUnanswered } from "./fault.ts";
import type { Container, Sandbox } from "./messages.ts";
import { containerOf, type PodSandbox, podSandboxOf, podsOf, READY, untoldContainerOf } from "./pod-parts.ts";
import type { Answered, RuntimeFault } from "./port.ts";

/** What was told of a thing, and the state that it was in; no state: it is to be asked about again. */
interface Known<T> {
  readonly state: string | null;
  readonly told: T;
}
type Seen<T> = Map<string, Known<T>>;

/**
 * Everything that a runtime holds, by pod. Only the lists are asked each time. What they do not tell (times, exit codes,
 * logs, addresses) is asked once for each state that a thing is seen in, so an idle node costs two calls; while nothing
 * changes, the very same pods are the answer.
 *
 * A fault of a list, and a question without an answer, are the fault of the whole. What is gone when it is asked about is
 * left out. Where the runtime refuses to tell of one thing, what was known of it stays, and it is asked about again.
 */
export function podLister(connection: Connection): () => Answered<RuntimePods> {
  let sandboxes: Seen<PodSandbox> = new Map();
  let containers: Seen<RuntimeContainer> = new Map();
  /** INVARIANT: what the two hold, or undefined. */
  let last: RuntimePods | undefined;

  return async () => {
    const [sandboxList, containerList] = await Promise.all([
      connection.call("ListPodSandbox", {}),
      connection.call("ListContainers", {}),
    ]);
    if (!sandboxList.ok) return sandboxList;
    if (!containerList.ok) return containerList;
    const ofSandboxes = compare(sandboxList.value.items, sandboxes);
    const ofContainers = compare(containerList.value.containers, containers);
    if (last !== undefined && ofSandboxes.isSame && ofContainers.isSame) return ok(last);

    const fault =
      (await askEach(ofSandboxes.changed, (sandbox) => askSandbox(connection, sandbox, ofSandboxes.seen))) ??
      (await askEach(ofContainers.changed, (container) =>
        askContainer(connection, container, ofContainers.seen, containers.get(container.id)),
      ));
    if (fault !== undefined) {
      // nothing is asked twice for what others did not answer
      for (const [id, known] of ofSandboxes.seen) sandboxes.set(id, known);
      for (const [id, known] of ofContainers.seen) containers.set(id, known);
      last = undefined;
      return { ok: false, error: fault };
    }
    sandboxes = ofSandboxes.seen;
    containers = ofContainers.seen;
    last = podsOf(toldOf(sandboxes), toldOf(containers));
    return ok(last);
  };
}

/** What is known of a list's things in the state that it has them in, and which are to be asked about. */
function compare<L extends { readonly id: string; readonly state: string }, T>(listed: readonly L[], known: Seen<T>) {
  const seen: Seen<T> = new Map();
  const changed: L[] = [];
  for (const one of listed) {
    const before = known.get(one.id);
    if (before?.state === one.state) seen.set(one.id, before);
    else changed.push(one);
  }
  return { seen, changed, isSame: changed.length === 0 && seen.size === known.size };
}

function* toldOf<T>(seen: Seen<T>): Generator<T> {
  for (const { told } of seen.values()) yield told;
}

/** Only a ready one has addresses to ask for. */
async function askSandbox(
  connection: Connection,
  listed: Sandbox,
  seen: Seen<PodSandbox>,
): Promise<RuntimeFault | undefined> {
  const tell = (state: string | null, told: PodSandbox): undefined => {
    seen.set(listed.id, { state, told });
  };
  if (listed.state !== READY) return tell(listed.state, podSandboxOf(listed, null));
  const answer = await nullIfGone(connection.call("PodSandboxStatus", { podSandboxId: listed.id }));
  if (!answer.ok) {
    if (isUnanswered(answer.error)) return answer.error;
    return tell(null, podSandboxOf(listed, null));
  }
  const status = answer.value?.status ?? null;
  if (status === null) return undefined;
  const { state, network } = status;
  return tell(state, podSandboxOf(listed, state === READY ? network : null, state));
}

async function askContainer(
  connection: Connection,
  listed: Container,
  seen: Seen<RuntimeContainer>,
  before: Known<RuntimeContainer> | undefined,
): Promise<RuntimeFault | undefined> {
  const tell = (state: string | null, told: RuntimeContainer): undefined => {
    seen.set(listed.id, { state, told });
  };
  const answer = await nullIfGone(connection.call("ContainerStatus", { containerId: listed.id }));
  if (!answer.ok) {
    if (isUnanswered(answer.error)) return answer.error;
    return tell(null, before?.told ?? untoldContainerOf(listed, faultText(answer.error)));
  }
  const status = answer.value?.status ?? null;
  return status === null ? undefined : tell(status.state, containerOf(listed, status));
}
