import { admission } from "./admission.ts";
import { allocatable } from "./allocatable.ts";
import { cgroups } from "./cgroups.ts";
import { claims } from "./claims.ts";
import { containerGc } from "./container-gc.ts";
import { cpus } from "./cpus.ts";
import { devices } from "./devices.ts";
import { eviction } from "./eviction.ts";
import { imageGc } from "./image-gc.ts";
import type { KindSpec, KindTraits } from "./kind-spec.ts";
import { memory } from "./memory.ts";
import { preemption } from "./preemption.ts";
import { probeGuard } from "./probe-guard.ts";
import { probes } from "./probes.ts";
import { resize } from "./resize.ts";
import { topology } from "./topology.ts";

/** The register of the kinds, in the order of `KINDS`; the types of asks, decisions and reasons are inferred from it. */
export const KIND_SPECS = {
  allocatable,
  cgroups,
  cpus,
  memory,
  topology,
  devices,
  claims,
  admission,
  preemption,
  resize,
  eviction,
  "image-gc": imageGc,
  "container-gc": containerGc,
  probes,
  "probe-guard": probeGuard,
} as const;
type Kind = keyof typeof KIND_SPECS;
const KIND_NAMES = Object.keys(KIND_SPECS) as Kind[];

export const specOf = (kind: Kind): KindSpec => KIND_SPECS[kind];
/** Whether the ask of a kind has a member of that name. */
export const asksFor = (kind: Kind, member: string): boolean =>
  Object.hasOwn(KIND_SPECS[kind].ask.schema?.form.shape ?? {}, member);
export const traitsOf = (kind: Kind): KindTraits => KIND_SPECS[kind].traits;

export type KindWith<T extends keyof KindTraits, V extends KindTraits[T]> = {
  [K in Kind]: (typeof KIND_SPECS)[K]["traits"][T] extends V ? K : never;
}[Kind];
/** The kinds whose trait is one of the values, in the order of the register. */
export const kindsWith = <T extends keyof KindTraits, const V extends KindTraits[T]>(trait: T, ...values: V[]) =>
  KIND_NAMES.filter((kind): kind is KindWith<T, V> => values.some((value) => traitsOf(kind)[trait] === value));

/**
 * The outcome of a decision in a word for people: for example `admitted` instead of `decided`. `pod` is absent if not
 * known; all kinds but the managers' own are then about a pod. A dry run of probes and a pod's claims are about a pod
 * too, but admit none: neither reads requests.
 */
export function verdictLabel({
  kind,
  verdict,
  pod,
}: {
  readonly kind: string;
  readonly verdict: string;
  readonly pod?: unknown;
}): string {
  if (verdict !== "decided" || pod === null || !Object.hasOwn(KIND_SPECS, kind)) return verdict;
  const { ask, traits } = specOf(kind as Kind);
  const looksAtRequests = traits.pods === "requests" || traits.pods === "overhead";
  return ask.pod === "object" && looksAtRequests && (pod !== undefined || traits.managers !== "itself")
    ? ADMITTED
    : verdict;
}
export const ADMITTED = "admitted";

/** The filter for recorded decisions that lists show with this word: an admitted pod has the verdict `decided`. */
export const filterOfVerdict = <K extends string>(kind: K | undefined, word: string | undefined) =>
  word === ADMITTED ? { kind: kind ?? ("admission" as const), verdict: "decided" } : { kind, verdict: word };

/** A decision's reason and its summary as JSON: see `KindSpec`. Null: none. */
export function notesOf(
  kind: Kind,
  decision: unknown,
  passAtMs: number | null,
): { readonly reason: string | null; readonly summary: string | null } {
  const spec = specOf(kind);
  const summary = spec.summaryOf?.(decision as never, passAtMs);
  return {
    reason: spec.reasonOf?.(decision as never) ?? null,
    summary: summary === undefined ? null : JSON.stringify(summary),
  };
}

/** Kinds whose answer also depends on remembered facts: their `next`, under the kind's name. */
export const REMEMBERING: ReadonlySet<Kind> = new Set(KIND_NAMES.filter((kind) => specOf(kind).facts !== null));

/** The kind whose facts are the images' records, for kinds with `readsImages`. */
export const IMAGE_RECORDS: Kind = "image-gc";

/** Kinds whose decisions list removals, which the history stores in separate rows. */
export type RemovingKind = KindWith<"removes", true>;
export const isRemoving = (kind: Kind): kind is RemovingKind => traitsOf(kind).removes;
export const REMOVING_KINDS = kindsWith("removes", true);
