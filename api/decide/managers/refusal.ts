import { milliValue, value } from "../../model/amount.ts";
import type { Numbers } from "../../model/decision.ts";
import { type Container, containersOf, type Pod } from "../../model/pod.ts";
import { exclusiveCpus } from "../cpus/request.ts";
import type { Reasons } from "../reasons.ts";
import type { Turn } from "../topology/admit.ts";
import { mergeHints } from "../topology/merge.ts";
import type { AligningPolicy } from "../topology/policy.ts";
import type { Answered } from "./desk.ts";
import { providersOf } from "./node.ts";

/** Why the pod was refused, as data: whose turn it was, who refused, and what was asked and left. */
export function explainRefusal({ node, pod, admission, refusal, tried }: Answered, reasons: Reasons): void {
  if (pod === null || refusal === null || admission === null) return;
  const at = refusal.container ?? pod.metadata.name;
  const turn = admission.turns.at(-1);
  if (turn !== undefined && !turn.admitted && node.topology.name !== "none") {
    const blocking = blockingResources(node.topology, turn).join(",");
    reasons.add("refused", at, "placement", { reason: refusal.reason, manager: "topology", blocking });
    return;
  }
  const done = admission.allocated.at(-1)?.by ?? [];
  const manager = providersOf(tried)[done.length]?.name ?? "managers";
  const container = containersOf(pod).find((c) => c.name === at);
  const numbers = container === undefined ? {} : numbersOf(manager, tried, node.settings.podLevel, pod, container);
  reasons.add("refused", at, manager, { reason: refusal.reason, manager, ...numbers });
}

function numbersOf(
  manager: string,
  tried: Answered["tried"],
  podLevel: boolean,
  pod: Pod,
  container: Container,
): Numbers {
  const requests = container.resources?.requests ?? {};
  if (manager === "cpus") {
    const { defaultCpus } = tried.cpus.state();
    return {
      requested: exclusiveCpus(pod, container, podLevel),
      free: tried.cpus.available().size,
      sharedPool: defaultCpus.size,
      requestedMilliCpu: milliValue(requests["cpu"]?.amount ?? 0),
    };
  }
  if (manager === "memory") {
    const free = [...tried.memory.state.machineState].map(([id, { memoryMap }]) => {
      const tables = [...memoryMap].map(([name, table]) => `${name} ${table.free}`);
      return `node ${id}: ${tables.join(", ")}`;
    });
    return { requested: value(requests["memory"]?.amount ?? 0), free: free.join("; ") };
  }
  const asked = Object.entries(container.resources?.limits ?? {}).filter(([name]) =>
    tried.devices.inventories.has(name),
  );
  const inUse = asked.map(([name]) => `${name} ${tried.devices.state.inUse(name).size}`);
  return {
    requested: asked.map(([name, quantity]) => `${name} ${value(quantity.amount)}`).join(", "),
    healthy: asked.map(([name]) => `${name} ${tried.devices.inventories.get(name)?.healthy.size ?? 0}`).join(", "),
    inUse: inUse.join(", "),
  };
}

/** Resources that cannot be placed at all; else those without which the others could be placed together. */
function blockingResources(policy: AligningPolicy, { hints }: Turn): readonly string[] {
  const lists = hints.flatMap((of) => [...of]);
  const impossible = lists.filter(([, list]) => list !== null && list.length === 0).map(([name]) => name);
  if (impossible.length > 0) return impossible;
  const alone = lists.filter(([left]) => {
    const others = hints.map((of) => new Map([...of].filter(([name]) => name !== left)));
    const merged = mergeHints(policy, others);
    return merged.ok && merged.value.admitted;
  });
  return (alone.length > 0 ? alone : lists).map(([name]) => name);
}
