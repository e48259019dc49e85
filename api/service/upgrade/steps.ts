import { lintConfiguration } from "../../decide/lint/lint.ts";
import { mergePatch } from "../../model/merge-patch.ts";
import type { Profile } from "../../profiles/profile.ts";
import { listed, many } from "../../text/sentences/words.ts";
import type { GateChange, NowFinding, ReportedNote, Step, UpgradeReport } from "./report.ts";

type ReportParts = Pick<UpgradeReport, "starts" | "startsNow" | "gates" | "notes" | "staticPods" | "decisions">;

/** The steps before the other kubelet starts: first those without which it does not start, last those that only watch it. */
export function stepsOf(told: ReportParts, configuration: unknown, to: Profile): readonly Step[] {
  const { starts, startsNow, gates, notes, staticPods, decisions } = told;
  const topics = (...wanted: readonly ReportedNote["topic"][]) =>
    notes.filter(({ topic }) => wanted.includes(topic)).flatMap(ofNote);
  return [
    ...starts.filter(isRefusal).map(ofFinding),
    ...topics("flag"),
    ...starts.filter((finding) => !isRefusal(finding)).map(ofFinding),
    ...startsNow.map(ofFinding),
    ...topics("behaviour"),
    ...ofGates(gates, configuration, to),
    ...ofDecisions(decisions),
    ...topics("file"),
    ...ofStaticPods(staticPods),
    ...topics("event", "metric"),
  ];
}

export const isRefusal = ({ severity }: Pick<NowFinding, "severity">): boolean => severity === "refuses-start";

const ofFinding = ({ field, message, advice, fix }: NowFinding): Step => ({
  what: `${field}: ${advice}`,
  why: message,
  patch: fix,
});

const ofNote = ({ name, what, before, patch }: ReportedNote): readonly Step[] =>
  before === null ? [] : [{ what: `${name}: ${before}`, why: what, patch }];

function ofGates(gates: readonly GateChange[], configuration: unknown, to: Profile): readonly Step[] {
  const flips = gates.filter(({ changes }) => changes === "value");
  if (flips.length === 0) return [];
  const kept = flips.flatMap(({ keep }) => (keep === null ? [] : [keep]));
  const all = kept.reduce<unknown>((patch, keep) => mergePatch(patch, keep), {});
  const isTaken = kept.length > 0 && isStarted(mergePatch(configuration, all), to);
  const which = listed(flips.map(({ name, to: after }) => `${name} (${after?.isOn === true ? "on" : "off"})`));
  return [
    {
      what: `see whether the gates that flip may do so${isTaken ? "; the patch keeps those as they are that can be kept" : ""}`,
      why: which,
      patch: isTaken ? all : null,
    },
  ];
}

const isStarted = (configuration: unknown, to: Profile): boolean =>
  lintConfiguration(configuration, undefined, to).every(({ severity }) => severity !== "refuses-start");

function ofDecisions(decisions: ReportParts["decisions"]): readonly Step[] {
  const changed = (decisions?.kinds ?? []).filter(({ changed }) => changed > 0);
  if (changed.length === 0) return [];
  const why = changed.map(({ kind, changed }) => `${changed} of ${kind}`);
  return [{ what: "look through what is decided otherwise on this node", why: listed(why), patch: null }];
}

function ofStaticPods(pods: readonly string[]): readonly Step[] {
  if (pods.length === 0) return [];
  return [
    {
      what: "go node by node, and wait until the static pods run again: with those of a control plane its API server and etcd go down",
      why: `${many(pods.length, "static pod")} of this node: the other kubelet ends and starts each under another uid, and its folder in podLogsDir is another one`,
      patch: null,
    },
  ];
}
