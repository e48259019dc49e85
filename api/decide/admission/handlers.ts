import type { AdmissionHandler, WouldRefuse } from "../../model/admission.ts";
import type { Pod } from "../../model/pod.ts";
import type { Admitting, Refused } from "./admitting.ts";
import { appArmorRefusals } from "./app-armor.ts";
import { evictionRefusals } from "./eviction-state.ts";
import { declaredFeatureRefusals, podFeatureRefusals } from "./features.ts";
import type { Predicates } from "./predicates.ts";
import { sysctlRefusals, type UnsafeSysctls } from "./sysctls.ts";

interface Handler {
  readonly name: AdmissionHandler;
  readonly check: (admitting: Admitting) => readonly Refused[];
}
/** What the handlers need beside the admission itself. */
export interface HandlerInputs {
  /** The pod with its pod-level resources whatever the gate. */
  readonly asked: Pod;
  readonly unsafe: UnsafeSysctls;
  readonly managers: ((pod: Pod) => Refused | null) | undefined;
  readonly predicates: Predicates;
}

/** The handlers in the order in which the kubelet asks them; the first refusal is the pod's. kubelet 1.36: NewMainKubelet. */
const handlersFor = ({ asked, unsafe, managers, predicates }: HandlerInputs): readonly Handler[] => [
  { name: "eviction", check: evictionRefusals },
  { name: "sysctl", check: (a) => sysctlRefusals(a, unsafe) },
  { name: "resources", check: ({ pod }) => [managers?.(pod) ?? []].flat() },
  { name: "predicates", check: () => predicates.refusals },
  { name: "app-armor", check: appArmorRefusals },
  { name: "pod-features", check: (a) => podFeatureRefusals(a, asked) },
  { name: "declared-features", check: declaredFeatureRefusals },
  { name: "shutdown", check: shutdownRefusals },
];

const SHUTTING_DOWN = "node is shutting down";
/** The kubelet says so itself in the node's Ready condition. kubelet 1.36: nodeshutdown managerImpl.Admit. */
function shutdownRefusals({ node, kubelet }: Admitting): readonly Refused[] {
  const ready = node.status?.conditions?.find(({ type }) => type === "Ready");
  if (!(kubelet.shuttingDown ?? ready?.message?.includes(SHUTTING_DOWN))) return [];
  return [{ reason: "NodeShutdown", message: "Pod was rejected as the node is shutting down." }];
}

/** Everything that would refuse, in order; the first is the one that the kubelet shows. */
export function askHandlers(admitting: Admitting, inputs: HandlerInputs): readonly WouldRefuse[] {
  const all = handlersFor(inputs).flatMap(({ name, check }) =>
    check(admitting).map((refused) => ({ handler: name, reason: refused.reason, message: refused.message })),
  );
  return all.map((refused, i) => ({ ...refused, shown: i === 0 }));
}
