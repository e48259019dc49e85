import { readDeviceCheckpoint } from "../../../actuator/pods/device-checkpoint.ts";
import { ok, type Result } from "../../model/result.ts";
import { printable } from "../../text/style.ts";
import { EXIT, type Fault, fault } from "../exit.ts";
import type { Allocating } from "./allocate.ts";
import type { DevicesAnswer } from "./decide.ts";
import type { KnownPod } from "./known-pods.ts";

const FILE = "kubelet_internal_checkpoint";

/**
 * Carries a decision out: the pod is known, then its devices are in the checkpoint, then plugins are asked what they bring. A
 * crash in between leaves what the same command goes on with. Errors: the decision refuses; a plugin does, and then the
 * devices are given back.
 */
export async function give(work: Allocating, { decision, next }: DevicesAnswer): Promise<Result<null, Fault>> {
  const { asked, place, keeper, waiting } = work;
  const { pods, files } = place;
  const { pod } = asked;
  const name = `${pod.namespace}/${pod.name}`;
  if (decision.startErrors.length > 0)
    return fault(
      EXIT.negative,
      ...decision.startErrors.map((error) => `the kubelet does not start: ${printable(error)}`),
    );
  if (decision.refusal !== null) return refused(name, decision.refusal);
  if (waiting.isStopped) return waiting.stopped();
  const { namespace, uid, object } = pod;
  const known: KnownPod = { namespace, name: pod.name, uid, isReady: isReady(work), pod: { ...object } };
  const noted = pods.put(known);
  if (!noted.ok) return fault(EXIT.failed, noted.error);
  // CPUs and memory of the same decision are nobody's: this command runs no pod
  const text = (keeper.merged(next) as { readonly assignments?: Readonly<Record<string, string>> } | null)
    ?.assignments?.[FILE];
  const kept = files.keep({ assignments: text === undefined ? {} : { [FILE]: text } });
  if (!kept.ok) return fault(EXIT.failed, kept.error);
  keeper.look(pods.uids);
  const prepared = await keeper.prepare(pod, waiting.signal);
  if (!prepared.ok) {
    if (prepared.error.keeps === true)
      return fault(
        EXIT.failed,
        `${printable(prepared.error.message)}: ${name} keeps its devices: run the command again`,
      );
    const removed = pods.remove(uid);
    return removed.ok ? refused(name, prepared.error) : fault(EXIT.failed, removed.error);
  }
  return known.isReady ? ok(null) : makeReady(work, known);
}

/** The calls that plugins want before containers start. They may reset devices, so they are made once. */
async function makeReady({ asked, place, keeper }: Allocating, known: KnownPod): Promise<Result<null, Fault>> {
  for (const container of asked.containers) {
    const started = await keeper.startOf(asked.pod, container);
    if (started.ok) continue;
    const why = `container ${container.name}: ${started.error.message}`;
    return fault(EXIT.failed, `${printable(why)}: the pod keeps its devices: run the command again, or free them`);
  }
  const noted = place.pods.put({ ...known, isReady: true });
  return noted.ok ? ok(null) : fault(EXIT.failed, noted.error);
}

/** It was before, and nothing of it is to be asked for again, as after a reboot. */
function isReady({ asked, place }: Allocating): boolean {
  const { uid } = asked.pod;
  const read = readDeviceCheckpoint(place.files);
  const own = (read.ok ? (read.value?.entries ?? []) : []).filter(({ podUid }) => podUid === uid);
  return place.pods.byHand.get(uid)?.isReady === true && own.length > 0 && own.every((e) => e.allocResp !== null);
}

const refused = (name: string, { reason, message }: { readonly reason: string; readonly message: string }) =>
  fault(EXIT.negative, `refused: ${printable(`${name}: ${reason}: ${message}`)}`);
