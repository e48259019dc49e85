import type { ActuatorConfig } from "../../../actuator/core/config.ts";
import type { PodsRead } from "../../../actuator/core/interfaces.ts";
import { readConfiguration } from "../../../actuator/daemon/configuration-file.ts";
import type { GcKind } from "../../../actuator/gc/journal.ts";
import { podsOrNone, type SharedDeps } from "../../../actuator/gc/open.ts";
import { observeMachine } from "../../../actuator/machine/observe.ts";
import { listedPods, podsSource, whyPartial } from "../../../actuator/manifests/pods-source.ts";
import { profileOf } from "../../profiles/index.ts";
import type { Cli } from "../cli.ts";
import { readPods } from "../inputs/pods.ts";
import { EXIT, fault, type Outcome } from "../terminal.ts";
import { configOf, type GcFlags, isPreview } from "./options.ts";

/** `goesByPods`: without known pods, every container would count as one of a deleted pod. */
const COLLECTIONS: Readonly<Record<"images" | "containers", { readonly kind: GcKind; readonly goesByPods: boolean }>> =
  {
    images: { kind: "image-gc", goesByPods: false },
    containers: { kind: "container-gc", goesByPods: true },
  };

/** `nodewise gc`: shows what would be removed, or runs one pass. */
export async function gc(what: "images" | "containers", given: GcFlags, cli: Cli): Promise<Outcome> {
  if (given.seen !== undefined && (!isPreview(given) || what !== "images"))
    return fault(EXIT.badInput, "--seen: only for `gc images --preview`: a pass uses the remembered times");
  if (given.pods === "-" && !isPreview(given))
    return fault(EXIT.badInput, "--pods: a pass reads the pods more than once: give a file");
  const config = configOf(given, cli.env);
  if (!config.ok) return config;
  const world = machineDeps(config.value, given.pods);
  const pods = await world.readPods();
  if (pods.pods === null) return fault(EXIT.badInput, ...pods.problems.map(({ message }) => message));
  const { kind, goesByPods } = COLLECTIONS[what];
  const lacksPods = goesByPods && config.value.manifests === undefined && given.pods === undefined;
  const job = { kind, lacksPods, given, config: config.value, terminal: cli.terminal };
  if (!isPreview(given)) return (await import("./pass.ts")).pass({ ...job, world });
  return (await import("./preview.ts")).preview({ ...job, world: { ...world, readPods: async () => pods } });
}

/** This machine with pods from a file, a directory or none, without the decider. */
function machineDeps(config: ActuatorConfig, podsFile: string | undefined): Omit<SharedDeps, "client"> {
  const fromFile = podsFile === undefined ? undefined : () => podsOf(podsFile, config.nodeName);
  return {
    observeMachine: () => observeMachine({ kubeletDirectory: config.kubeletDir }),
    readPods: fromFile ?? podsOrNone(config, podsSource(config)),
    readConfiguration: () => readConfiguration(config.kubeletConfiguration, profileOf(config.kubeletVersion)),
  };
}

/** Read each time: changes to the file since the plan count. */
async function podsOf(file: string, nodeName: string): Promise<PodsRead> {
  const read = await readPods(file, nodeName, { mayBePage: true });
  if (read.ok) {
    const { pods, written, documents } = read.value;
    const why = documents.map((one) => whyPartial(one, written)).find((partial) => partial !== null) ?? null;
    return listedPods(file, pods, why);
  }
  const problems = read.error.lines.map((message) => ({ from: "pods" as const, message }));
  return { pods: null, whole: false, problems, notices: [] };
}
