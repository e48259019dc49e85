import type { Store } from "../../db/store.ts";
import type { OffThread, Ports, RequestSpan, SpanAttributes } from "../ports.ts";
import type { Evaluate } from "../service/evaluation.ts";

/** The ports of a request by which it decides and records, each use of them with a span below its own. */
export function tracedBy(
  ports: Ports,
  span: RequestSpan | undefined,
): { readonly ports: Ports; readonly span?: RequestSpan } {
  if (span === undefined) return { ports };
  const { store, evaluate, offThread } = ports;
  const traced = {
    ...ports,
    store: { ...store, record: recordingIn(span, store) },
    evaluate: decidingIn(span, evaluate),
    ...(offThread === undefined ? {} : { offThread: { ...offThread, decide: elsewhereIn(span, offThread) } }),
  };
  return { ports: traced, span };
}

const decidingIn =
  (span: RequestSpan, evaluate: Evaluate): Evaluate =>
  async (job) => {
    const started = performance.now();
    const made = await evaluate(job);
    // it is asked again with what it wants
    if (made.state === "wants_snapshot" || made.state === "wants_facts") return made;
    if (made.state === "invalid") span.child("decide", started, kindOf(job.kind), made.problem.code);
    else if (made.state === "refused")
      span.child("decide", started, { ...kindOf(made.kind), "nodewise.node": made.node }, made.problem.code);
    else span.child("decide", started, attributesOf(made));
    return made;
  };

const recordingIn =
  (span: RequestSpan, store: Pick<Store, "record">): Store["record"] =>
  async (recording) => {
    const started = performance.now();
    const recorded = await store.record(recording);
    const { kind, node, id } = recording.decision;
    const decisionId = recorded.ok ? recorded.value.decisionId : id;
    const error = recorded.ok ? undefined : recorded.error.code;
    span.child(
      "record",
      started,
      { ...kindOf(kind), "nodewise.node": node, "nodewise.decision.id": decisionId },
      error,
    );
    return recorded;
  };

/** Spans of what a thread decides and records. */
const elsewhereIn =
  (span: RequestSpan, offThread: OffThread): OffThread["decide"] =>
  (asked, bytes, signal) => {
    let started = performance.now();
    let recorded: SpanAttributes | null = null;
    const answer = offThread.decide(asked, bytes, signal, (head) => {
      span.child("decide", started, attributesOf(head));
      started = performance.now();
      recorded = { ...kindOf(head.kind), "nodewise.node": head.node, "nodewise.decision.id": head.id };
    });
    return (
      answer?.then((made) => {
        const error = made.ok ? undefined : made.error.code;
        span.child(recorded === null ? "decide" : "record", started, recorded ?? kindOf(asked.kind), error);
        return made;
      }) ?? null
    );
  };

const kindOf = (kind: string | null): SpanAttributes => (kind === null ? {} : { "nodewise.kind": kind });
const attributesOf = (of: {
  readonly kind: string;
  readonly node: string;
  readonly verdict: string;
}): SpanAttributes => ({
  ...kindOf(of.kind),
  "nodewise.node": of.node,
  "nodewise.verdict": of.verdict,
});
