import { html } from "hono/html";
import type { ProbedContainer, ProbeRun, ProbesDecision } from "../../model/probes-decision.ts";
import type { OutcomeWord } from "../../model/probes-outcomes.ts";
import { durationText } from "../../text/time-text.ts";
import { lane, type Stretch } from "../draw/lane.ts";
import type { Html } from "../page.ts";
import { recordPart } from "../record-part.ts";
import { moment } from "../time.ts";
import { verdictTag } from "../verdict-tag.ts";
import { plural, section } from "./section.ts";
import type { NodeView, ProbedPod } from "./view.ts";

/** The dry runs of probes that were recorded, as lanes of time. */
export function probesSection({ probed, row: { name, lastSnapshotId }, undrawn }: NodeView): Html {
  if (probed.length > 0)
    return section(
      "probes",
      "Probe timelines",
      html`${probed.map((pod) => recordPart(pod.head, undrawn, () => podLanes(pod)))}${LEGEND}
<p class="small rest">Of each pod the newest, of the pods probed last: ${probed.length} · <a href="/nodes/${encodeURIComponent(name)}/decisions?kind=probes">all recorded dry runs</a></p>`,
    );
  const asked = { snapshotId: lastSnapshotId ?? "ID", ask: { pod: "NAMESPACE/NAME", outcomes: "ok,ok,fail*3" } };
  return section(
    "probes",
    "Probe timelines",
    html`<p>No dry run of a pod’s probes is recorded for this node. This makes one, with the answers that you name:</p>
<pre tabindex="0" data-copy="the command">curl -X POST -H 'content-type: application/json' "$API/v1/decisions/probes" -d '${JSON.stringify(asked)}'</pre>
<p class="small soft">What became of the node’s own probes is told on the node: <code>nodewise probes</code>, <code>nodewise probes history</code>.</p>`,
  );
}

const OUTCOME: Readonly<Record<OutcomeWord, readonly [tone: string, height: number, words: string]>> = {
  ok: ["good", 0.5, "ok"],
  warn: ["warn", 0.5, "ok with a warning"],
  fail: ["bad", 1, "failed"],
  timeout: ["bad", 1, "no answer in time: failed"],
  hang: ["warn", 1, "the answer broke off"],
  error: ["warn", 1, "could not be asked"],
};
const LEGEND = html`<ul class="legend"><li class="good">status: ready; probe: ok (half as high)</li><li class="warn">started, not ready; a warning, or no clear answer</li><li class="bad">failed (full height), restarted or ended</li><li class="faint">runs, not started; on hold</li></ul>`;
/** Of one probe; the decision has all. */
const MOST_ATTEMPTS = 300;

function podLanes({ head, decision }: ProbedPod): Html {
  const { containers, endMs } = decision;
  const name = head.pod === null ? "a pod" : `${head.pod.namespace}/${head.pod.name}`;
  return html`<div class="card lanes"><p><strong>${name}</strong> ${verdictTag(head.verdict)} ${summary(decision)}, decided ${moment(head.decidedAtMs)}, <a href="/decisions/${head.id}">why</a></p>
${containers.map((container) => containerLanes(container, { endMs, id: head.id }))}
<div class="lane-row scale"><span></span><span><span>0s</span><span>${durationText(endMs / 2)}</span><span>${durationText(endMs)}</span></span></div></div>`;
}

function summary({ restarts, endMs, ready, containers }: ProbesDecision): string {
  const probes = containers.reduce((sum, container) => sum + container.probes.length, 0);
  const state = ready?.length > 0 ? "" : ", never ready";
  return `${plural(probes, "probe")} in ${durationText(endMs)}: ${plural(restarts, "restart")}${state}`;
}

interface DryRun {
  readonly id: string;
  readonly endMs: number;
}
function containerLanes(container: ProbedContainer, run: DryRun): Html {
  const { endMs } = run;
  const { container: name, runs, started, ready, probes, restarts } = container;
  const until = (toMs: number | null): number => toMs ?? endMs;
  const spans = (list: readonly { fromMs: number; toMs: number | null }[], tone: string, words: string): Stretch[] =>
    list.map(({ fromMs, toMs }) => ({ fromMs, toMs: until(toMs), tone, height: 1, words }));
  const lives = runs.map(({ startedAtMs, endedAtMs }) => ({ fromMs: startedAtMs, toMs: endedAtMs }));
  const ends = runs.flatMap(({ endedAtMs, endedBy }): Stretch[] =>
    endedAtMs === null
      ? []
      : [
          {
            fromMs: endedAtMs,
            toMs: null,
            tone: "bad",
            height: 1,
            words: `ended at ${durationText(endedAtMs)}${endedBy === null ? "" : ` by its ${endedBy} probe`}`,
          },
        ],
  );
  const status = [
    ...spans(lives, "faint", "runs, not started"),
    ...spans(started, "warn", "started, not ready"),
    ...spans(ready, "good", "ready"),
    ...ends,
  ];
  const words = `${name}: ${plural(restarts, "restart")}, ${ready.length === 0 ? "never ready" : `ready from ${durationText(ready[0]?.fromMs ?? 0)}`}`;
  return html`<h3>${name}</h3><div class="lane-row"><span>status</span>${lane(status, endMs, words)}</div>${probes.map((probe) => probeLane(probe, name, run))}`;
}

function probeLane({ type, handler, attempts, onHold }: ProbeRun, container: string, { id, endMs }: DryRun): Html {
  const shown = attempts.slice(0, MOST_ATTEMPTS);
  const failed = attempts.filter(({ outcome }) => OUTCOME[outcome]?.[1] === 1).length;
  const marks = shown.map(({ atMs, outcome }): Stretch => {
    const [tone, height] = OUTCOME[outcome] ?? ["faint", 0.5];
    return { fromMs: atMs, toMs: null, tone, height };
  });
  const holds = onHold.map(
    ({ fromMs, toMs }): Stretch => ({ fromMs, toMs: toMs ?? endMs, tone: "faint", height: 0.25, words: "on hold" }),
  );
  const words = `${type} probe (${handler}) of ${container}: ${plural(attempts.length, "attempt")}, ${failed} failed`;
  return html`<div class="lane-row"><span>${type}</span>${lane([...holds, ...marks], endMs, words)}</div><p class="small soft lane-note">${handler}: ${plural(attempts.length, "attempt")}, ${failed} failed${attempts.length > shown.length ? html`; ${shown.length} of ${attempts.length} drawn · <a href="/v1/decisions/${id}">all, as JSON</a>` : ""}</p>`;
}
