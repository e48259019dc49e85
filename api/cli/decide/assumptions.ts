import { looksAtPods } from "../../decide/pods/whose-pods.ts";
import { stepsOf } from "../../documents/inputs/origin.ts";
import { assumedIn } from "../../model/asks.ts";
import type { Decided, DecisionOf, Kind, Refusal } from "../../model/decision.ts";
import type { Assumed } from "../../model/pod-defaults.ts";
import { PROBE_TYPES } from "../../model/probe.ts";
import type { Result } from "../../model/result.ts";
import type { Snapshot } from "../../model/snapshot.ts";
import { type ChosenProfile, type ProfileNote, whyAnother } from "../../profiles/index.ts";
import type { Profile } from "../../profiles/profile.ts";
import { leftOutText } from "../../service/upgrade/sections.ts";
import { listed } from "../../text/sentences/words.ts";
import type { MadeStatic } from "../inputs/pods.ts";
import type { Question } from "../inputs/question.ts";
import type { Assumption, WhatIf } from "../inputs/what-if.ts";

interface Asked extends WhatIf {
  readonly chosen: ChosenProfile;
  readonly madeStatic: readonly MadeStatic[];
}

/** All that an answer assumes since nobody gave it. */
export function assumptionsOf(
  kind: Kind,
  { snapshot, chosen: { note }, assumed, madeStatic }: Asked,
  ask: Question["ask"],
  answer: Result<Decided<DecisionOf[Kind]>, Refusal>,
): readonly Assumption[] {
  const ofInput = [
    assumedRequestsOf(kind, snapshot, ask),
    assumedKubelet(note),
    looksAtPods(kind) ? assumedStaticPods(madeStatic) : undefined,
    answer.ok ? assumedOutcomesOf(ask, answer.value) : undefined,
  ];
  return [...assumed, ...ofInput.filter((one) => one !== undefined)];
}

/** For a person; undefined: nothing is assumed. */
export const assumedText = (assumptions: readonly Assumption[]): string | undefined =>
  assumptions.length === 0 ? undefined : assumptions.map(({ text }) => text).join("; ");
/** The same as a member of the answer, or none. */
export const assumedData = (assumptions: readonly Assumption[]): { readonly assumed?: object } =>
  assumptions.length === 0 ? {} : { assumed: Object.assign({}, ...assumptions.map(({ data }) => data)) as object };

/** The note that another kubelet takes defaults of the one of now, whose `profile` is given, as left out. */
export const assumedLeftOut = (fields: readonly string[], { version }: Profile): readonly Assumption[] =>
  fields.length === 0 ? [] : [{ text: leftOutText(fields, version), data: { leftOut: fields } }];

const NAMED = 4;
/** A list that may be long: its first, and how many more. */
export const firstOf = (names: readonly string[]): readonly string[] =>
  names.length > NAMED ? [...names.slice(0, NAMED), `${names.length - NAMED} more`] : names;

/** `cpu 2`. */
const requestText = ({ path, value }: Assumed): string => `${stepsOf(path).at(-1)} ${value}`;

/** Lists the requests that the decision fills in for objects that no API server has stored. */
function assumedRequestsOf(kind: Kind, { pods = [] }: Snapshot, ask: Question["ask"]): Assumption | undefined {
  const requests = assumedIn(kind, pods, ask);
  if (requests.length === 0) return undefined;
  const places = Map.groupBy(requests, ({ path }) => path.replace(/\.resources\.requests\b.*$/, ""));
  const named = Array.from(places, ([place, of]) => `${place} (${of.map(requestText).join(", ")})`);
  return { text: `requests from limits, as the API server does: ${listed(firstOf(named))}`, data: { requests } };
}

/** The note that another kubelet answers than that which the node or the caller named. */
function assumedKubelet(note: ProfileNote): Assumption | undefined {
  const why = whyAnother(note);
  return why === null ? undefined : { text: why, data: {} };
}

/** The note that pods of files were taken as static pods, which a kubelet counts as critical. */
function assumedStaticPods(made: readonly MadeStatic[]): Assumption | undefined {
  if (made.length === 0) return undefined;
  const named = firstOf(made.map(({ written, name }) => `${written} as ${name}`));
  const text = `manifests in --pods are static pods, which are critical: ${listed(named)}; pods with a uid are taken as they are`;
  return { text, data: { staticPods: made.map(({ index, name }) => ({ path: `snapshot.pods[${index}]`, name })) } };
}

/** The types of probes that were run and whose outcomes nobody gave. */
function assumedOutcomesOf(
  ask: Question["ask"],
  { decision }: { readonly decision: DecisionOf[Kind] },
): Assumption | undefined {
  if (ask === undefined || !("outcomes" in ask) || !("containers" in decision)) return undefined;
  const { outcomes } = ask;
  const run = new Set(
    (decision as DecisionOf["probes"]).containers.flatMap(({ probes }) => probes.map(({ type }) => type)),
  );
  const open = PROBE_TYPES.filter((type) => run.has(type) && outcomes[type] === undefined);
  if (open.length === 0) return undefined;
  const options = listed(open.map((type) => `--${type}`));
  const text = `each attempt of ${listed(open)} succeeds; --outcomes, or ${options}, take others`;
  return { text, data: { outcomes: Object.fromEntries(open.map((type) => [type, ["ok"]])) } };
}
