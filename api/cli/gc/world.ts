import type { ActuatorConfig } from "../../../actuator/config.ts";
import { readConfiguration } from "../../../actuator/configuration-file.ts";
import { podsOrNone, type Shared } from "../../../actuator/gc/open.ts";
import { observeMachine } from "../../../actuator/machine/observe.ts";
import { whyPartial } from "../../../actuator/partial-pods.ts";
import { listedPods, podsSource } from "../../../actuator/pods-source.ts";
import type { PodsRead } from "../../../actuator/ports.ts";
import { readPods } from "../inputs/pods.ts";

/** This machine with pods from a file, a directory or nowhere, but for who decides. */
export function worldOf(config: ActuatorConfig, podsFile: string | undefined): Omit<Shared, "client"> {
  const fromFile = podsFile === undefined ? undefined : () => podsOf(podsFile, config.nodeName);
  return {
    observeMachine: () => observeMachine({ kubeletDirectory: config.kubeletDir }),
    readPods: fromFile ?? podsOrNone(config, podsSource(config)),
    readConfiguration: () => readConfiguration(config.kubeletConfiguration),
  };
}

/** Read anew each time: what a person changed in it since the plan counts. */
async function podsOf(file: string, nodeName: string): Promise<PodsRead> {
  const read = await readPods(file, nodeName);
  if (read.ok) {
    const { pods, written, documents } = read.value;
    const why = documents.map((one) => whyPartial(one, written)).find((partial) => partial !== null) ?? null;
    return listedPods(file, pods, why);
  }
  const problems = read.error.lines.map((message) => ({ from: "pods" as const, message }));
  return { pods: null, whole: false, problems, notices: [] };
}
