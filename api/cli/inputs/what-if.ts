import { suggestionText } from "../../base/near-name.ts";
import { ok, type Result } from "../../base/result.ts";
import { podBoundElsewhere } from "../../decide/pods/pods-of-other-nodes.ts";
import { assumedTime } from "../../documents/inputs/origin.ts";
import { type AskOf, KINDS, type Kind } from "../../model/decision.ts";
import { specOf, traitsOf } from "../../model/kinds.ts";
import { type KubeletConfiguration, kubeletConfiguration } from "../../model/kubelet-configuration.ts";
import { knowsMemory, type Machine } from "../../model/machine.ts";
import { namespacedPodName } from "../../model/pod.ts";
import type { Snapshot } from "../../model/snapshot.ts";
import { bytesIn, type Profile } from "../../profiles/profile.ts";
import { timeText } from "../../text/time-text.ts";
import { EXIT, type Fault, fault } from "../terminal.ts";

export interface WhatIfOptions {
  /** The policy of the kind's own manager. */
  readonly policy?: string;
  readonly scope?: string;
}
export interface WhatIf {
  readonly snapshot: Snapshot;
  /** The values assumed for missing ones. */
  readonly assumed: readonly Assumption[];
}
/** An assumption as text and as parts of the snapshot. */
export interface Assumption {
  readonly text: string;
  readonly data: Readonly<Record<string, unknown>>;
}

const DEFAULTS: Assumption = {
  text: "the kubelet's default configuration; --config takes another",
  data: { kubeletConfiguration: {} },
};

/** A pod of another node is decided on as a new pod of this one. The kubelet's own answer would be that the pod is not its own. */
export function asNewPod(
  kind: Kind,
  snapshot: Snapshot,
  ask: AskOf[Kind],
): { readonly ask: AskOf[Kind]; readonly assumed: readonly Assumption[] } {
  // a kind whose ask has only names is about the node's own pods
  const [pod, boundTo] = (specOf(kind).ask.pod === "name" ? undefined : podBoundElsewhere(snapshot, ask)) ?? [];
  if (pod === undefined) return { ask, assumed: [] };
  const { status: _, ...created } = pod;
  const { nodeName: __, ...spec } = created.spec;
  const text = `${namespacedPodName(pod)} is bound to ${boundTo}: checked as a new pod on ${snapshot.node?.metadata.name}`;
  return { ask: { ...ask, pod: { ...created, spec } } as AskOf[Kind], assumed: [{ text, data: { pod: { boundTo } } }] };
}

type Configuration = Readonly<Record<string, unknown>>;

/**
 * The snapshot with another policy or scope, and with an assumed configuration if a machine is given for a decision of the
 * managers without one. Errors: an option that the kind does not use, or its value.
 */
export function whatIf(
  kind: Kind,
  snapshot: Snapshot,
  options: WhatIfOptions,
  isMachineGiven: boolean,
  { defaults }: Profile,
): Result<WhatIf, Fault> {
  const changes = changesOf(kind, options);
  if (!changes.ok) return changes;
  const { managers, policy, defaultsConfiguration, needsTime } = traitsOf(kind);
  const given = snapshot.kubeletConfiguration ?? undefined;
  const machine = snapshot.machine ?? undefined;
  if (given === undefined && isMachineGiven && machine !== undefined && managers === "itself") {
    const kept = defaults.evictionHard["memory.available"];
    const kubeletConfiguration = assumedFor(machine, changes.value, kept);
    const lacksMemory = policy?.field === "memoryManagerPolicy" && !knowsMemory(machine);
    const text = assumptionText(kubeletConfiguration, kept, lacksMemory);
    return ok({
      snapshot: withConfiguration(snapshot, kubeletConfiguration),
      assumed: [{ text, data: { kubeletConfiguration } }],
    });
  }
  const assumed: Assumption[] = [];
  if (given === undefined && defaultsConfiguration) assumed.push(DEFAULTS);
  const observedAt = needsTime ? assumedTime(snapshot) : undefined;
  if (observedAt !== undefined) {
    const text = `observedAt ${timeText(Date.parse(observedAt))} (the latest time in the stats); --observed-at takes another`;
    assumed.push({ text, data: { observedAt } });
  }
  const timed = observedAt === undefined ? snapshot : { ...snapshot, observedAt };
  if (Object.keys(changes.value).length === 0) return ok({ snapshot: timed, assumed });
  // the schema would not change these values
  const changed = { ...given, ...changes.value } as KubeletConfiguration;
  return ok({ snapshot: { ...timed, kubeletConfiguration: changed }, assumed });
}

const withConfiguration = (snapshot: Snapshot, input: Configuration): Snapshot => ({
  ...snapshot,
  kubeletConfiguration: kubeletConfiguration.parse(input),
});

function changesOf(kind: Kind, { policy, scope }: WhatIfOptions): Result<Configuration, Fault> {
  const changes: Record<string, unknown> = {};
  if (policy !== undefined) {
    const own = traitsOf(kind).policy;
    if (own === null) {
      const others = KINDS.filter((one) => traitsOf(one).policy !== null).join(", ");
      return fault(EXIT.badInput, `--policy: ${kind} has no policy of its own; ${others} have`);
    }
    const { field, values } = own;
    if (!values.includes(policy)) {
      const meant = suggestionText(policy, values);
      const words = `${field} is one of ${values.join(", ")}`;
      return fault(EXIT.badInput, `--policy ${policy}: ${words}${meant === null ? "" : `; ${meant}`}`);
    }
    changes[field] = policy;
  }
  if (scope !== undefined) {
    if (traitsOf(kind).managers === "none") {
      const others = KINDS.filter((one) => traitsOf(one).managers !== "none").join(", ");
      return fault(EXIT.badInput, `--scope: ${kind} uses no topology manager; ${others} do`);
    }
    changes["topologyManagerScope"] = scope;
  }
  return ok(changes);
}

/**
 * A configuration with every manager on, and the smallest reservation with which a kubelet starts. `kept`: memory by evictionHard,
 * which reservedMemory must equal.
 */
function assumedFor({ cpus = [], numaNodes = [] }: Machine, changes: Configuration, kept: string): Configuration {
  const first = Math.min(...cpus.map(({ cpu }) => cpu));
  const home = numaNodes.find(({ memoryBytes = 0 }) => memoryBytes >= bytesIn(kept));
  const merged: Configuration = {
    ...(cpus.length > 0 ? { cpuManagerPolicy: "static", reservedSystemCPUs: `${first}` } : {}),
    ...(home === undefined ? {} : { memoryManagerPolicy: "Static" }),
    ...changes,
  };
  if (home === undefined || merged["memoryManagerPolicy"] !== "Static") return merged;
  return { ...merged, reservedMemory: [{ numaNode: home.id, limits: { memory: kept } }] };
}

function assumptionText(configuration: Configuration, kept: string, lacksMemory: boolean): string {
  const said = Object.entries(configuration).map(([field, value]) => {
    if (typeof value === "string") return `${field} ${value}`;
    const [{ numaNode }] = value as [{ numaNode: number }];
    return `${field} ${kept} of NUMA node ${numaNode} (evictionHard's default)`;
  });
  if (lacksMemory) said.push(WITHOUT_MEMORY);
  return `${said.join(", ")}; --config takes another`;
}
const WITHOUT_MEMORY =
  "memoryManagerPolicy None (the machine has no memoryBytes of its numaNodes, which lscpu does not report: give what `nodewise snapshot` prints there as machine, or cAdvisor's MachineInfo)";
