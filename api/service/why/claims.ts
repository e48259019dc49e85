import { withoutNulls } from "../../base/nulls.ts";
import { fieldsOf } from "../../base/own.ts";
import { claimName, podClaims } from "../../decide/dra/claim-name.ts";
import { PREPARE_FAILED } from "../../model/claims.ts";
import type { ObservedEvent } from "../../model/observed.ts";
import { pod as podForm } from "../../model/pod.ts";
import { type ClaimPart, dra as draForm, type ResourceClaim } from "../../model/resource-claim.ts";
import type { Change, Finding, FindingOf, Missing, PodExplanationDecision } from "../../model/why.ts";
import { claimsExcerpt } from "./excerpts.ts";
import { ask, nodeAt } from "./node-at.ts";
import { eventsOf, finding, missing, type WhyContext, wordOfEvent } from "./why-context.ts";

type Cause = FindingOf<"claims-not-prepared">["numbers"]["cause"];

/**
 * kubelet 1.34 to 1.37: prepareResources, resourceclaim.Name, IsForPod. The groups `claim` and `driver` capture the names in the
 * message.
 */
const WORDS: readonly (readonly [form: RegExp, cause: Cause])[] = [
  [/: ResourceClaim not created yet$/, "not-made"],
  [/fetch ResourceClaim (?<claim>\S+): .*not found$/, "not-found"],
  [/ResourceClaim (?<claim>\S+): not allocated$/, "not-allocated"],
  [/is not allowed to use ResourceClaim (?<claim>\S+) \(/, "not-reserved"],
  [/ResourceClaim (?:\S+\/)?(?<claim>\S+) was not created for /i, "of-another-pod"],
  [/DRA driver (?<driver>\S+) is not registered/, "driver-not-registered"],
  [/old ResourceClaim with same name (?<claim>\S+) and different UID/, "older-claim"],
  [/ResourceClaim (?<claim>\S+) is being unprepared/, "being-unprepared"],
  [/NodePrepareResources failed for ResourceClaim (?<claim>[^\s:]+)/, "driver"],
  [/NodePrepareResources/, "driver"],
];

/** The finding for a pod whose containers wait for its ResourceClaims. `last`: the kubelet's latest event about it. */
export function claimsOf(of: WhyContext, last: ObservedEvent): Finding {
  const [form, cause] = WORDS.find(([form]) => form.test(last.message)) ?? [null, "unknown" as const];
  const { claim = null, driver = null } = form?.exec(last.message)?.groups ?? {};
  return notPrepared(of, last, { cause, claim, driver });
}
/** `last`: null if no event of the kubelet is known and the finding follows from the documents alone. */
function notPrepared(of: WhyContext, last: ObservedEvent | null, numbers: FindingOf<"claims-not-prepared">["numbers"]) {
  const { cause, ...named } = numbers;
  return finding("claims-not-prepared", {
    since: eventsOf(of, PREPARE_FAILED)[0]?.first ?? null,
    words: last === null ? [] : [wordOfEvent(last)],
    numbers,
    whatWouldChange: wayOf(cause, named),
    ...(of.decides ? askAgain(of, last?.message ?? null) : {}),
  });
}

/** The finding for a pod on a node that has a claim without devices and no events: the kubelet does not start such a pod. */
export function notAllocated(of: WhyContext): Finding | null {
  const [first] = unallocatedClaims(of);
  return first === undefined
    ? null
    : notPrepared(of, null, { cause: "not-allocated", claim: first.metadata.name, driver: null });
}

/** The pod's claims that are among the documents and have no allocation yet. */
export function unallocatedClaims(of: WhyContext): readonly ResourceClaim[] {
  const { held, ref } = of.subject;
  const read = podForm.safeParse(withoutNulls(held?.value));
  const known = draForm.safeParse(withoutNulls({ resourceClaims: claimPart(of, "resourceClaims") }));
  if (!read.success || !known.success) return [];
  const names = podClaims(read.data, true).map((one) => claimName(read.data, one));
  return (known.data.resourceClaims ?? []).filter(
    ({ metadata: { namespace = "default", name }, status }) =>
      namespace === ref.namespace &&
      status?.allocation === undefined &&
      names.some((one) => one.ok && one.value.name === name),
  );
}
/** A list of DRA objects from the documents of the cluster, or of the pod's node. */
export const claimPart = ({ evidence: { parts }, subject: { node } }: WhyContext, name: ClaimPart): unknown =>
  fieldsOf(parts.get("")?.["dra"])[name] ?? fieldsOf(parts.get(node ?? "")?.["dra"])[name];
/** The devices that the scheduler has to find for a claim. */
export function devicesFor({ metadata: { name }, spec }: ResourceClaim): Change {
  const asked = (spec?.devices?.requests ?? []).flatMap(({ exactly, firstAvailable = [] }) => [
    exactly,
    ...firstAvailable,
  ]);
  const classes = new Set(asked.flatMap((one) => one?.deviceClassName ?? []));
  return { code: "claim_devices", numbers: { claim: name, classes: [...classes].join(", ") } };
}

function wayOf(
  cause: Cause,
  named: { readonly claim: string | null; readonly driver: string | null },
): readonly Change[] {
  const numbers = Object.fromEntries(
    Object.entries(named).flatMap(([key, value]) => (value === null ? [] : [[key, value]])),
  );
  const code = {
    "not-made": "claim_made",
    "not-found": "claim_made",
    "not-allocated": "claim_allocated",
    "not-reserved": "claim_reserved",
    "of-another-pod": "claim_of_pod",
    "driver-not-registered": "driver_registered",
    "older-claim": "older_claim_ends",
    "being-unprepared": null,
    driver: "driver_answers",
    unknown: null,
  } as const satisfies Readonly<Record<Cause, Change["code"] | null>>;
  const found = code[cause];
  return found === null ? [] : [{ code: found, numbers }];
}

interface ClaimsAnswer {
  readonly decisions: readonly PodExplanationDecision[];
  readonly missing: readonly Missing[];
}

/** The decision on the pod's claims as they are now, compared with the kubelet's message. */
function askAgain(of: WhyContext, said: string | null): ClaimsAnswer {
  const { subject, evidence } = of;
  if (subject.node === null) return { decisions: [], missing: [] };
  const node = nodeAt(evidence, { node: subject.node, atMs: null, about: subject.ref });
  if (!node.ok) return { decisions: [], missing: [missing(of, "node", node.error)] };
  const unknown = node.value.lacks.has("resourceClaims")
    ? [missing(of, "resourceClaims", "what its claims are allocated and reserved for")]
    : [];
  const asked = ask("claims", node.value, { pod: `${subject.ref.namespace}/${subject.ref.name}` });
  if (!asked.ok)
    return {
      decisions: [],
      missing: unknown.length > 0 ? unknown : [missing(of, "resourceClaims", asked.error.message)],
    };
  const { head, decided } = asked.value;
  const excerpt = claimsExcerpt(of, decided.decision);
  if (excerpt === null) return { decisions: [], missing: unknown };
  const isSame = excerpt.message !== null && said?.endsWith(excerpt.message) === true;
  // no object of the cluster shows a driver's response, or whether the driver is registered
  const differs =
    isSame || said === null
      ? null
      : (excerpt.message ??
        "by these documents its claims can be prepared: what stood in the way is gone, or is the driver's");
  return { decisions: [{ kind: "claims", ...head, agrees: isSame ? true : null, differs, excerpt }], missing: unknown };
}
