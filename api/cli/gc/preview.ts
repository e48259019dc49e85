import { decideLocally } from "../../../actuator/client/local-client.ts";
import { FactsStore, factsOf } from "../../../actuator/core/facts-file.ts";
import type { DecisionAnswer } from "../../../actuator/core/interfaces.ts";
import type { GcKind } from "../../../actuator/gc/journal.ts";
import { type NodeObservation, observeNode } from "../../../actuator/gc/observe-node.ts";
import { gcDeps, observeSettings } from "../../../actuator/gc/open.ts";
import { parseDuration } from "../../base/duration.ts";
import { err, ok, type Result } from "../../base/result.ts";
import type { DecisionOf, Explain } from "../../model/decision.ts";
import type { ImageGcFacts } from "../../model/image-gc.ts";
import { REMEMBERING } from "../../model/kinds.ts";
import { profileOf } from "../../profiles/index.ts";
import { answerText } from "../../text/tables/index.ts";
import { EXIT, type Fault, fault, type Outcome, printData, printText, type Terminal } from "../terminal.ts";
import type { GcFlags, GcJob } from "./options.ts";

/** Lists and decides with the stored facts; removes nothing and stores nothing. */
export async function preview({ kind, lacksPods, given, config, world, terminal }: GcJob): Promise<Outcome> {
  const deps = gcDeps(world, config);
  if (!deps.ok) return fault(EXIT.badInput, deps.error);
  const seen = await observeNode(deps.value, observeSettings(config), 0);
  deps.value.runtime.close();
  if (!seen.ok) return fault(seen.error.from === "configuration" ? EXIT.badInput : EXIT.failed, seen.error.message);
  for (const { from, message } of seen.value.notices) terminal.warn(`nodewise: ${from}: ${message}`);
  if (lacksPods) terminal.warn(`nodewise: ${NO_PODS}`);
  const remembered: Result<RememberedFacts, Fault> = REMEMBERING.has(kind)
    ? rememberedOf({ kind, given, config, terminal }, seen.value)
    : ok({});
  if (!remembered.ok) return remembered;
  const { facts, assumed } = remembered.value;
  const answer = decideLocally(kind, seen.value.snapshot, {
    ask: { operation: given.operation },
    facts: factsOf(kind, facts),
    explain: explainOf(given),
  });
  if (!answer.ok) return fault(EXIT.negative, answer.error.message);
  const { policyVersion } = profileOf(config.kubeletVersion);
  const printed = { kind, node: config.nodeName, at: seen.value.at, policyVersion, answer: answer.value, assumed };
  printAnswer(printed, given, terminal);
  return ok(answer.value.verdict === "fails" ? EXIT.negative : EXIT.ok);
}

export const NO_PODS =
  "no pods are given, so no container counts as one of a pod that is gone: give all pods of this node with --pods FILE";

interface RememberedFacts {
  readonly facts?: unknown;
  readonly assumed?: string;
}
function rememberedOf(
  { kind, given: { seen }, config: { stateDir }, terminal }: Pick<GcJob, "kind" | "given" | "config" | "terminal">,
  { snapshot, lists, at }: NodeObservation,
): Result<RememberedFacts, Fault> {
  const facts = new FactsStore(stateDir, (message) => terminal.warn(`nodewise: ${message}`)).factsFor(kind, snapshot);
  if (seen !== undefined) {
    const images = lists["images"] as Parameters<typeof assumeSeen>[1];
    const assumed = assumeSeen(facts as ImageGcFacts | undefined, images, Date.parse(at), seen);
    if (!assumed.ok) return fault(EXIT.badInput, assumed.error);
    return ok({ facts: assumed.value, assumed: `images without a remembered time were first seen ${seen} ago` });
  }
  if (facts === undefined) {
    const advice = "with --seen 1h they all count as first seen an hour ago";
    terminal.warn(`nodewise: nothing is remembered in ${stateDir}: every image counts as first seen now (${advice})`);
  }
  return ok(facts === undefined ? {} : { facts });
}

interface Listed {
  readonly id: string;
  readonly spec?: { readonly runtimeHandler?: string };
}

/** Adds every image without facts as first seen `seen` (a Go duration) before `nowMs`. Errors: an invalid or negative duration. */
export function assumeSeen(
  remembered: ImageGcFacts | undefined,
  images: readonly Listed[],
  nowMs: number,
  seen: string,
): Result<ImageGcFacts, string> {
  const parsed = parseDuration(seen);
  if (!parsed.ok) return err(`--seen: ${parsed.error}`);
  const thenMs = nowMs - Math.round(parsed.value.millis);
  if (thenMs > nowMs || thenMs < 0) return err(`--seen: \`${seen}\` is not a duration`);
  const known = new Set((remembered?.records ?? []).map(([id, , , handler]) => `${id},${handler ?? ""}`));
  const assumed = images.flatMap(({ id, spec }): ImageGcFacts["records"] => {
    const handler = spec?.runtimeHandler ?? "";
    if (known.has(`${id},${handler}`)) return [];
    return [[id, thenMs, null, ...(handler === "" ? [] : [handler])]];
  });
  return ok({
    atMs: remembered?.atMs ?? thenMs,
    beganAtMs: remembered?.beganAtMs ?? thenMs,
    failed: remembered?.failed ?? false,
    records: [...(remembered?.records ?? []), ...assumed],
    removed: remembered?.removed ?? [],
  });
}

interface Printed {
  readonly kind: GcKind;
  readonly node: string;
  readonly policyVersion: string;
  /** RFC 3339 */
  readonly at: string;
  readonly answer: DecisionAnswer;
  readonly assumed?: string | undefined;
}

/** As with `nodewise decide`: tables without reasons, data with them. */
const explainOf = ({ output, explain }: Pick<GcFlags, "output" | "explain">): Explain =>
  explain ?? (output === "table" ? "off" : "reasons");

/** Prints an answer as `nodewise decide` does; `more` is added in JSON and YAML. */
export function printAnswer(
  { kind, node, at, policyVersion, answer, assumed }: Printed,
  given: Pick<GcFlags, "output" | "explain">,
  terminal: Terminal,
  more: object = {},
): void {
  const { output } = given;
  const explain = explainOf(given);
  const { verdict, needs, next } = answer;
  const reasons = explain === "off" ? [] : answer.reasons;
  if (output === "table") {
    const decided = { decision: answer.decision as DecisionOf[GcKind], verdict, reasons, needs };
    const observedAtMs = Date.parse(at);
    printText(terminal, answerText({ kind, node, policyVersion, decided, explain, assumed, observedAtMs }, terminal));
    return;
  }
  const head = {
    kind,
    node,
    policyVersion,
    observedAt: at,
    ...(assumed === undefined ? {} : { assumed }),
  };
  printData(terminal, { ...head, ...more, decision: answer.decision, verdict, reasons, needs, next }, output);
}
