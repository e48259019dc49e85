import { html } from "hono/html";
import { lintConfiguration } from "../../decide/lint/lint.ts";
import { issueText } from "../../inputs/origin.ts";
import { askedPodRef, decodeAsk } from "../../model/asks.ts";
import { decodeSnapshot } from "../../model/decode.ts";
import { ok, type Result } from "../../model/result.ts";
import type { Snapshot } from "../../model/snapshot.ts";
import { withNewStatus } from "../../replay/new-status.ts";
import type { Problem } from "../../routes/problem.ts";
import type { Exchange } from "../../routes/route.ts";
import type { Html } from "../page.ts";
import { fieldsOf } from "./assemble.ts";
import type { Before } from "./before.ts";
import type { ReadChange } from "./change.ts";
import { changedInput, withConfiguration } from "./changed-input.ts";
import type { FormFault } from "./given.ts";
import { type PodAsk, plansOf } from "./plans.ts";
import { type Comparison, resultOf } from "./result.ts";
import { rememberedOf, type StoredBase } from "./stored.ts";

/** What is compared. */
export interface Asked {
  readonly stored: StoredBase | null;
  readonly before: Before;
  readonly change: ReadChange;
}
/** What the page tells of it, or what of the change is wrong. */
export interface Compared {
  readonly content: Html | Promise<Html>;
  readonly faults: readonly FormFault[];
}

/** Decides every kind on both sides. Errors: those of the history. */
export async function compared(exchange: Exchange, asked: Asked): Promise<Result<Compared, Problem>> {
  const {
    stored,
    before,
    change: { change },
  } = asked;
  const refused = (faults: readonly FormFault[]): Result<Compared, Problem> => ok({ content: html``, faults });
  if (before.snapshot === null)
    return refused([{ field: "node", text: "there is no node yet: name one of the history, or give files" }]);
  const next = changedInput(before.snapshot, change);
  const decoded = decodeSnapshot(next.input);
  const pod = podAsk(change.pod);
  const faults: FormFault[] = [
    ...next.faults.map((text) => ({ field: "remove" as const, text })),
    ...(decoded.ok
      ? []
      : decoded.error.map((issue) => ({ field: "change" as const, text: issueText(issue, next.origins) }))),
    ...(pod.ok ? [] : pod.error.map((text) => ({ field: "pod" as const, text }))),
  ];
  if (!decoded.ok || !pod.ok || faults.length > 0) return refused(faults);
  const remembered =
    stored === null || before.isWhole ? ok(new Map()) : await rememberedOf(exchange, stored.node, before.snapshot);
  if (!remembered.ok) return remembered;
  // after a change of the configuration the kubelet starts anew, and writes the node's status
  const after = withNewStatus(before.snapshot, decoded.value);
  const plans = await plansOf({ before: before.snapshot, after, pod: pod.value, remembered: remembered.value });
  const configurations = [
    bare(before.configuration),
    bare(withConfiguration(bare(before.configuration), change)),
  ] as const;
  const ref = askedPodRef({ pod: pod.value });
  const comparison: Comparison = {
    plans,
    configurations,
    findings: change.configuration === null ? [] : newFindings(configurations, before.snapshot, after),
    pod: ref === null ? null : `${ref.namespace}/${ref.name}`,
    removed: change.remove,
    assumed: before.assumed,
    notes: notesOn(asked, stored !== null && !before.isWhole),
  };
  return ok({ content: resultOf(comparison), faults: [] });
}

function podAsk(pod: ReadChange["change"]["pod"]): Result<PodAsk["pod"], readonly string[]> {
  const decoded = decodeAsk("admission", pod === null ? null : { pod: pod.posted });
  if (decoded.ok) return ok((decoded.value as PodAsk).pod);
  const origins = pod?.source == null ? [] : [{ at: ["ask", "pod"], source: pod.source, base: [] }];
  return { ok: false, error: decoded.error.map((issue) => issueText(issue, origins)) };
}

/** What lint says of the new configuration that it did not say of the old one. */
function newFindings(
  [old, next]: Comparison["configurations"],
  before: Snapshot,
  after: Snapshot,
): Comparison["findings"] {
  const keyOf = ({ code, field, message }: Comparison["findings"][number]): string =>
    JSON.stringify([code, field, message]);
  const known = new Set(lintConfiguration(old, before).map(keyOf));
  return lintConfiguration(next, after).filter((finding) => !known.has(keyOf(finding)));
}
const bare = (configuration: unknown): unknown => fieldsOf(configuration)["kubeletconfig"] ?? configuration ?? {};

function notesOn({ change: { change } }: Asked, remembers: boolean): readonly string[] {
  return [
    ...(change.configuration === null
      ? []
      : ["The node’s capacity and allocatable after are what its kubelet writes once it runs with the configuration."]),
    ...(change.remove.length === 0
      ? []
      : ["What the pods that go used is still in the node’s own figures, which are observed."]),
    ...(change.pod === null
      ? []
      : [
          "`cgroups` after has the pod if it is admitted; `eviction` has not, as nothing is known of what it would use.",
        ]),
    ...(remembers
      ? []
      : [
          "`eviction` and `image-gc` remember nothing here: grace periods begin now, and images are first seen now, which keeps them for `imageMinimumGCAge`.",
        ]),
  ];
}
