import type { DecisionAnswer, DecisionClient } from "../../../actuator/ports.ts";
import { driverOf, snapshotOf } from "../../../actuator/snapshot.ts";
import type { DevicesDecision } from "../../model/device-decision.ts";
import { ok, type Result } from "../../model/result.ts";
import { EXIT, type Fault, fault } from "../exit.ts";
import type { Allocating } from "./allocate.ts";

export interface DevicesAnswer extends DecisionAnswer {
  readonly decision: DevicesDecision;
}

/**
 * Asks `devices` about the pod until plugins have answered what they are asked meanwhile (GetPreferredAllocation). Errors: no
 * answer at all; a stop. kubelet 1.36: devicesToAllocate.
 */
export async function decideDevices(
  work: Allocating,
  client: DecisionClient,
  configuration: unknown,
): Promise<Result<DevicesAnswer, Fault>> {
  const { asked, keeper, waiting } = work;
  const { pod } = asked;
  for (;;) {
    const version = keeper.version;
    const asks = await client.decide("devices", snapshotFor(work, configuration), { pod: pod.object });
    if (!asks.ok) return fault(EXIT.failed, asks.error.message);
    const answer = asks.value as DevicesAnswer;
    const { unanswered } = answer.decision;
    const goesOn = unanswered.length > 0 && keeper.isChosenByPlugin(pod) && keeper.ask(pod.uid, unanswered);
    if (!goesOn) {
      keeper.forget(pod.uid);
      await client.settle(answer);
      return ok(answer);
    }
    await waiting.change(version);
    if (waiting.isStopped) return waiting.stopped();
  }
}

function snapshotFor({ asked, keeper, place, machine }: Allocating, kubeletConfiguration: unknown) {
  const { config, files, pods } = place;
  const { uid } = asked.pod;
  const { assignments } = files.read();
  return snapshotOf({
    machine: machine(),
    kubeletConfiguration,
    pods: pods.objectsBut(uid),
    nodeName: config.nodeName,
    cgroup: { driver: driverOf(kubeletConfiguration), root: config.cgroupMount },
    ...keeper.parts(uid),
    ...(assignments === undefined ? {} : { assignments }),
  });
}
