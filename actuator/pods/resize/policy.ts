import type { Actuation } from "../../lifecycle/record.ts";
import { differsIn, type ResourcesByName, resourcesIn } from "./forms.ts";

type Fields = Readonly<Record<string, unknown>>;
const RESIZABLE = ["cpu", "memory"] as const;

/**
 * The running instances that have to go before a container may have other resources, by container's name.
 * kubelet 1.36: determineContainerResize.
 */
export function restartsFor(
  wanted: Fields,
  inForce: ResourcesByName,
  runningOf: (container: string) => string | null,
): Actuation["restarts"] {
  const resources = resourcesIn(wanted);
  const restarts = containersOf(wanted).flatMap((container) => {
    const name = String(container["name"]);
    const [now, then, id] = [inForce[name], resources[name], runningOf(name)];
    if (now === undefined || then === undefined || id === null) return [];
    const mustGo = RESIZABLE.some((one) => differsIn(one, now, then) && isRestarted(container, one));
    return mustGo ? [[name, id] as const] : [];
  });
  return Object.fromEntries(restarts);
}

export const restartsForMemory = (object: Fields, name: string): boolean =>
  containersOf(object).some((container) => container["name"] === name && isRestarted(container, "memory"));

function isRestarted(container: Fields, resource: string): boolean {
  const policies = container["resizePolicy"];
  const found = (Array.isArray(policies) ? (policies as readonly Fields[]) : []).find(
    (policy) => policy?.["resourceName"] === resource,
  );
  return found?.["restartPolicy"] === "RestartContainer";
}

function containersOf(object: Fields): readonly Fields[] {
  const { initContainers = [], containers = [] } = object["spec"] as {
    readonly initContainers?: readonly Fields[];
    readonly containers?: readonly Fields[];
  };
  // one that only runs at the start has no other resources to wait for
  return [...initContainers.filter((c) => c["restartPolicy"] === "Always"), ...containers];
}
