import { allocatable } from "./allocatable.ts";
import { cgroups } from "./cgroups.ts";
import { claims } from "./claims.ts";
import { containerGc } from "./container-gc.ts";
import { eviction } from "./eviction.ts";
import { imageGc } from "./image-gc.ts";
import type { KindSpec, KindTraits } from "./kind-spec.ts";
import { cpus, devices, memory, topology } from "./managers.ts";
import { admission, preemption } from "./preemption.ts";
import { probeGuard } from "./probe-guard.ts";
import { probes } from "./probes.ts";
import { resize } from "./resize.ts";

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
 * How a decision ended, in a word for people: that a pod comes in, `admitted`, and not that it was decided. `pod` is absent where it is
 * not known: all but the managers' own kinds are asked about one. A dry run of probes and a
 * pod's claims are asked about a pod too, and let none in: neither looks at requests.
 */
export function endWord({
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

/** The filter of recorded decisions that finds those which lists show with this word: a pod that came in was `decided` upon. */
export const filterOfWord = <K extends string>(kind: K | undefined, word: string | undefined) =>
  word === ADMITTED ? { kind: kind ?? ("admission" as const), verdict: "decided" } : { kind, verdict: word };

/** A decision's reason and, as JSON, its summary: see `KindSpec`. Null: it has none. */
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

/** Kinds whose answer also depends on what is remembered of the node: their `next`, under the kind's name. */
export const REMEMBERING: ReadonlySet<Kind> = new Set(KIND_NAMES.filter((kind) => specOf(kind).facts !== null));

/** Whose facts are the images' records, for kinds that read them (`readsImages`). */
export const IMAGE_RECORDS: Kind = "image-gc";

/** Kinds whose decisions remove things, which the history keeps in rows of their own. */
export type RemovingKind = KindWith<"removes", true>;
export const isRemoving = (kind: Kind): kind is RemovingKind => traitsOf(kind).removes;
export const REMOVING_KINDS = kindsWith("removes", true);
