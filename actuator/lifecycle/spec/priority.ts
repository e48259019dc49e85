import { SYSTEM_PRIORITY_CLASSES } from "../../../api/model/priority-classes.ts";
import type { At } from "./at.ts";
import { shown } from "./at.ts";

const MOST = 2_147_483_647;

/**
 * A pod's priority; null: it has none. `isManifest`: no API server has made one of its class, so the two classes that are
 * the same everywhere give it here, and any other needs the number beside it. kubernetes 1.36: priority admission,
 * computePodPriority.
 */
export function priorityOf(spec: At, isManifest: boolean): number | null {
  const at = spec.field("priority");
  const priority = at.between(-MOST - 1, MOST);
  const named = spec.field("priorityClassName");
  const name = named.text();
  if (!isManifest || name === "") return priority;
  const ofClass = SYSTEM_PRIORITY_CLASSES.get(name);
  if (ofClass === undefined) {
    if (at.isAbsent) {
      const known = [...SYSTEM_PRIORITY_CLASSES.keys()].join(" and ");
      named.fault(
        `${shown(name)} needs the API server, only ${known} are known here: write the class's value in \`priority\``,
      );
    }
    return priority;
  }
  if (priority !== null && priority !== ofClass)
    at.invalid(`contradicts \`priorityClassName\` ${name}, which is ${ofClass}: remove it`);
  return at.isAbsent ? ofClass : priority;
}
