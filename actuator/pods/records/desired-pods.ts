import type { RefusedItem } from "../../../api/documents/problem.ts";
import type { Profile } from "../../../api/profiles/profile.ts";
import type { PodOrigin, PodsRead, Problem } from "../../core/interfaces.ts";
import type { RunnablePod, SpecFault } from "../../lifecycle/pod.ts";
import { refusedItemOf } from "../../lifecycle/refused-item.ts";
import type { Served } from "../../lifecycle/spec/field-value.ts";
import { runnablePod } from "../../lifecycle/spec/pod-spec.ts";

export interface RefusedManifest {
  /** `NAMESPACE/NAME`, as far as the object has a namespace and a name. */
  readonly pod: string;
  /** The file; absent: the pod's source is not a file. */
  readonly file?: string;
  /** Lines and columns of that file, from 1. */
  readonly faults: readonly (SpecFault & { readonly line?: number; readonly column?: number })[];
}
/** The pods that should run, by uid, in the order of their source. */
export interface DesiredPods {
  readonly pods: ReadonlyMap<string, RunnablePod>;
  /** The files by uid, for pods read from a file. */
  readonly files: ReadonlyMap<string, string>;
  /** The manifests that this daemon cannot run as they are written. */
  readonly refused: readonly RefusedManifest[];
  /** The refused items' identities, and the items that the source could not even decode, as far as they can be read. */
  readonly refusedItems: readonly RefusedItem[];
  /** False: a pod that is missing in `pods` may still be wanted. */
  readonly whole: boolean;
  /** The unreadable files, as in PodsRead; null: missing pods may be in any file. */
  readonly unread: readonly string[] | null;
  readonly problems: readonly Problem[];
  readonly notices: readonly Problem[];
}
interface NodeOfPods {
  readonly nodeName: string;
  readonly profile: Profile;
  /** Optional features that are served; undefined: none. */
  readonly serves: Served | undefined;
}
type CheckedObjects = ReadonlyMap<unknown, RunnablePod | RefusedManifest>;

/** Checks the pods of a source; unchanged objects are not checked again. Null: the source could not be read. */
export function desiredPodsReader(
  nodeName: string,
  profile: Profile,
  serves?: Served,
): (read: PodsRead) => DesiredPods | null {
  let checked: CheckedObjects = new Map();
  let last: { readonly read: PodsRead; readonly desired: DesiredPods } | null = null;
  return (read) => {
    if (read.pods === null) return null;
    if (last?.read === read) return last.desired;
    const before = checked;
    checked = new Map(
      read.pods.map((object) => [
        object,
        before.get(object) ?? checkedPod(object, read.origins?.get(object), { nodeName, profile, serves }),
      ]),
    );
    const desired = desiredOf(read, checked);
    last = { read, desired };
    return desired;
  };
}

function desiredOf(read: PodsRead, checked: CheckedObjects): DesiredPods {
  const pods = new Map<string, RunnablePod>();
  const files = new Map<string, string>();
  const refused: RefusedManifest[] = [];
  const refusedItems = [...(read.undecoded ?? [])];
  const twins = duplicateUids(read.pods ?? []);
  for (const [index, object] of (read.pods ?? []).entries()) {
    const pod = checked.get(object);
    if (pod === undefined) continue;
    const item = refusedItemOf(object);
    const names = item.name === null ? undefined : twins.get(item.uid);
    if (names !== undefined) {
      refused.push(duplicateUidRefusal(object, names, pod, read.origins?.get(object)));
      refusedItems.push({ ...item, deletion: null });
    } else if ("faults" in pod) {
      refused.push(item.name === null ? ofIndex(pod, index) : pod);
      refusedItems.push(item);
    } else {
      pods.set(pod.uid, pod);
      const file = read.origins?.get(object)?.file;
      if (file !== undefined) files.set(pod.uid, file);
    }
  }
  const { whole, unread = null, problems, notices } = read;
  return { pods, files, refused, refusedItems, whole, unread, problems, notices };
}

function checkedPod(
  object: unknown,
  origin: PodOrigin | undefined,
  { nodeName, profile, serves }: NodeOfPods,
): RunnablePod | RefusedManifest {
  const pod = runnablePod(object, profile, serves);
  const faults = pod.ok ? elsewhere(origin?.nodeName ?? pod.value.spec.nodeName, nodeName) : pod.error;
  if (pod.ok && faults.length === 0) return pod.value;
  if (origin === undefined) return { pod: nameOf(object), faults };
  return {
    pod: nameOf(object),
    file: origin.file,
    faults: faults.map((fault) => ({ ...fault, ...origin.place(fault.path) })),
  };
}

/** The names of different pods with the same uid in one list, by uid: their owner cannot be determined. */
function duplicateUids(objects: readonly unknown[]): ReadonlyMap<unknown, ReadonlySet<string>> {
  const names = new Map<unknown, Set<string>>();
  for (const object of objects) {
    const { uid, name } = refusedItemOf(object);
    if (uid === null || name === null) continue;
    const known = names.get(uid);
    if (known === undefined) names.set(uid, new Set([nameOf(object)]));
    else known.add(nameOf(object));
  }
  return new Map([...names].filter(([, { size }]) => size > 1));
}

function duplicateUidRefusal(
  object: unknown,
  names: ReadonlySet<string>,
  checked: RunnablePod | RefusedManifest,
  origin: PodOrigin | undefined,
): RefusedManifest {
  const pod = nameOf(object);
  const others = [...names].filter((name) => name !== pod).join(", ");
  const path = "metadata.uid";
  const fault = {
    path,
    message: `is also the uid of ${others}: a uid is one pod's, so none of them is changed or ended`,
  };
  const faults = "faults" in checked ? checked.faults : [];
  return { pod, ...(origin && { file: origin.file }), faults: [{ ...fault, ...origin?.place(path) }, ...faults] };
}

/** Names an item of a list by its index, if the item has no name. */
const ofIndex = ({ faults, ...refused }: RefusedManifest, index: number): RefusedManifest => {
  const pod = `items[${index}]`;
  return {
    ...refused,
    pod,
    faults: faults.map(({ path, ...fault }) => ({ ...fault, path: path === "$" ? pod : `${pod}.${path}` })),
  };
};

/** Refuses a pod for another node; a kubelet would replace the node name in the manifest by its own, and run the pod. */
const elsewhere = (asked: unknown, nodeName: string): readonly SpecFault[] =>
  asked === "" || asked === nodeName
    ? []
    : [{ path: "spec.nodeName", message: `this node is \`${nodeName}\`, not \`${String(asked)}\`: remove it` }];

export function nameOf(object: unknown): string {
  const { metadata } = (object ?? {}) as { metadata?: { namespace?: unknown; name?: unknown } };
  return `${String(metadata?.namespace ?? "default")}/${String(metadata?.name ?? "?")}`;
}

/** One line about a manifest that is not run: its first fault, and the number of faults. */
export function refusalOf({ pod, file, faults }: RefusedManifest): Problem {
  const [first] = faults;
  const where = file === undefined ? "" : `${file}:${first?.line}:${first?.column}: `;
  const more = faults.length > 1 ? ` (and ${faults.length - 1} more)` : "";
  return { from: "pods", message: `${where}${pod} is not run: ${first?.path}: ${first?.message}${more}` };
}

/** The problem that pods whose manifests are gone are not ended while files are unreadable. */
export const keptForUnreadFiles = (pods: readonly string[], unread: readonly string[]): Problem => ({
  from: "pods",
  message: `not ended, since ${unread.join(", ")} cannot be read and may name them: ${pods.join(", ")}`,
});
