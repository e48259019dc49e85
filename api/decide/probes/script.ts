import type { ProbeTiming } from "../../model/probes-decision.ts";
import {
  type OutcomeScript,
  type OutcomeWord,
  parseOutcomes,
  type ScriptedOutcome,
} from "../../model/probes-outcomes.ts";
import { goDurationText } from "../go/duration.ts";
import { containerPort } from "./container-port.ts";
import type { ProbeSetting } from "./settings.ts";
import type { ScriptedAttempt } from "./timeline-input.ts";
import type { AttemptOutcome } from "./worker-state.ts";

/** Where the kubelet's text is the same whoever is asked, it is that; else it is one that tells what was scripted. */
const OUTCOME: Readonly<Record<Exclude<OutcomeWord, "timeout">, AttemptOutcome>> = {
  ok: { result: "success", output: "" },
  warn: { result: "warning", output: "" },
  fail: { result: "failure", output: "" },
  error: { error: "the container could not be asked" },
  hang: {
    error: "context deadline exceeded (Client.Timeout or context cancellation while reading body)",
    state: "failure",
  },
};
/** Of a body that ends too soon. Go: io.ErrUnexpectedEOF. */
const BROKEN_OFF: AttemptOutcome = { error: "unexpected EOF", state: "failure" };
const ALWAYS_OK: OutcomeScript = [{ word: "ok", tookMs: null }];

export type ScriptedProbe = Pick<ProbeSetting, "handler" | "timing" | "unknownPort">;

/**
 * The script of one probe from the items of an ask, which were checked with it; `ok` for ever without any. Nothing lasts
 * longer than the timeout: what would is one. Where the port has no number there is nobody to ask. Only HTTP has a body
 * that may hang: of every other handler it is a timeout.
 */
export function attemptsOf(items: readonly string[] | undefined, probe: ScriptedProbe): readonly ScriptedAttempt[] {
  const { unknownPort } = probe;
  const port = unknownPort === null ? null : containerPort(unknownPort, []);
  if (port?.ok === false) return [{ word: "error", outcome: { error: port.error }, tookMs: 0 }];
  const script = items === undefined ? undefined : parseOutcomes(items);
  const given = script?.ok === true && script.value.length > 0 ? script.value : ALWAYS_OK;
  const known = new Map<ScriptedOutcome, ScriptedAttempt>();
  return given.map((scripted) => {
    const made = known.get(scripted) ?? attemptOf(scripted, probe);
    known.set(scripted, made);
    return made;
  });
}

function attemptOf({ word, tookMs }: ScriptedOutcome, { handler, timing }: ScriptedProbe): ScriptedAttempt {
  const timeoutMs = timing.timeoutSeconds * 1000;
  const isHang = word === "hang" && handler === "httpGet";
  const isTimeout = word === "timeout" || (word === "hang" && !isHang);
  const took = tookMs ?? (isHang || isTimeout ? timeoutMs : 0);
  if (isHang && took < timeoutMs) return { word, outcome: BROKEN_OFF, tookMs: took };
  if (isHang) return { word, outcome: OUTCOME.hang, tookMs: timeoutMs };
  if (isTimeout) return { word: "timeout", outcome: timedOut(handler, timing), tookMs: Math.min(took, timeoutMs) };
  if (took < timeoutMs) return { word, outcome: OUTCOME[word as keyof typeof OUTCOME], tookMs: took };
  return { word: "timeout", outcome: timedOut(handler, timing), tookMs: timeoutMs };
}

/** All other handlers name whom they asked, which a dry run does not know. kubelet 1.36: pkg/probe/grpc. */
function timedOut(handler: ProbeSetting["handler"], { timeoutSeconds }: ProbeTiming): AttemptOutcome {
  const within = goDurationText(BigInt(timeoutSeconds) * 1_000_000_000n);
  const output = handler === "grpc" ? `timeout: health rpc did not complete within ${within}` : "no answer in time";
  return { result: "failure", output };
}
