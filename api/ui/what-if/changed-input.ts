import type { Origin } from "../../inputs/origin.ts";
import { configurationPath } from "../../model/kubelet-configuration.ts";
import { nearNames } from "../../model/near-name.ts";
import { podNamespace, podUid } from "../../model/pod.ts";
import type { Snapshot } from "../../model/snapshot.ts";
import { changed } from "../../replay/change.ts";
import { type Fields, fieldsOf } from "./assemble.ts";
import type { Change } from "./change.ts";

export interface ChangedInput {
  readonly input: Fields;
  readonly origins: readonly Origin[];
  /** Pods that were to be removed and are not there. */
  readonly faults: readonly string[];
}

/** The snapshot as it would be posted with the change made: its configuration, and without the pods that go. */
export function changedInput(before: Snapshot, { configuration, remove }: Change): ChangedInput {
  const gone = goneUids(before, remove);
  const stored = JSON.parse(JSON.stringify(before)) as Fields;
  const rest = gone.uids.size === 0 ? stored : without(stored, gone.uids);
  if (configuration === null) return { input: rest, origins: [], faults: gone.faults };
  const { source } = configuration;
  const input = { ...rest, kubeletConfiguration: withConfiguration(stored["kubeletConfiguration"], { configuration }) };
  const origins =
    source === null ? [] : [{ at: ["kubeletConfiguration"], source, base: configurationPath(source.value) }];
  return { input, origins, faults: gone.faults };
}

/** A configuration with the change made. */
export function withConfiguration(
  kubeletConfiguration: unknown,
  { configuration }: Pick<Change, "configuration">,
): unknown {
  if (configuration === null) return kubeletConfiguration;
  const { as, value } = configuration;
  const change = as === "whole" ? { kubeletConfiguration: value } : { kubeletConfigurationPatch: value };
  return changed({ kubeletConfiguration }, change).kubeletConfiguration;
}

function goneUids({ pods = [] }: Snapshot, names: readonly string[]): { uids: ReadonlySet<string>; faults: string[] } {
  const uids = new Set<string>();
  const faults: string[] = [];
  for (const name of names) {
    const meant = pods.filter((pod) => pod.metadata.name === name || fullName(pod) === name);
    const [first, second] = meant;
    const shown = name.slice(0, 253);
    if (first === undefined) {
      const near = nearNames(name, name.includes("/") ? pods.map(fullName) : pods.map((pod) => pod.metadata.name));
      faults.push(`there is no pod \`${shown}\`${near.length === 0 ? "" : `; there is ${near.join(", ")}`}`);
    } else if (second !== undefined)
      faults.push(`there are ${meant.length} pods \`${shown}\`: name ${meant.map(fullName).join(" or ")}`);
    else uids.add(podUid(first) ?? "");
  }
  return { uids, faults };
}
type Pod = NonNullable<Snapshot["pods"]>[number];
export const fullName = (pod: Pod): string => `${podNamespace(pod)}/${pod.metadata.name}`;

/** Without what the node keeps of the pods. What they used is still in the node's own figures, which are observed. */
function without(stored: Fields, uids: ReadonlySet<string>): Fields {
  const stats = fieldsOf(stored["stats"]);
  const runtime = fieldsOf(stored["runtime"]);
  const listOf = (of: Fields, name: string): readonly Fields[] => (of[name] ?? []) as readonly Fields[];
  const sandboxes = listOf(runtime, "sandboxes");
  const ids = new Set(
    sandboxes.filter(({ metadata }) => uids.has(String(fieldsOf(metadata)["uid"]))).map(({ id }) => id),
  );
  const kept = {
    pods: listOf(stored, "pods").filter((pod) => !uids.has(podUid(pod as unknown as Pod) ?? "")),
    ...(stats["pods"] === undefined
      ? {}
      : {
          stats: {
            ...stats,
            pods: listOf(stats, "pods").filter(({ podRef }) => !uids.has(String(fieldsOf(podRef)["uid"]))),
          },
        }),
    ...(stored["runtime"] === undefined
      ? {}
      : {
          runtime: {
            ...runtime,
            ...(runtime["sandboxes"] === undefined ? {} : { sandboxes: sandboxes.filter(({ id }) => !ids.has(id)) }),
            ...(runtime["containers"] === undefined
              ? {}
              : { containers: listOf(runtime, "containers").filter(({ podSandboxId }) => !ids.has(podSandboxId)) }),
          },
        }),
  };
  return { ...stored, ...kept };
}
