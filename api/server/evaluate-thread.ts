import { type MessagePort, parentPort, workerData } from "node:worker_threads";
import type { StoreFailure } from "../../db/failure.ts";
import { type StoreSetting, storeAt } from "../../db/open/node.ts";
import type { Store } from "../../db/store.ts";
import { err, ok, type Result } from "../base/result.ts";
import type { ApiLimits, DecidedHead, OffThreadAsk, OffThreadRequest } from "../dependencies.ts";
import { type Counts, type DecidingStore, decide } from "../http/decide.ts";
import { readReport } from "../http/results.ts";
import { epochMs } from "../model/units.ts";
import { errorFields, type Log } from "../observe/log.ts";
import { plainMetrics } from "../observe/plain-metrics.ts";
import { idsOf } from "../service/canonical.ts";
import { evaluateSnapshot, evaluator } from "../service/evaluate.ts";
import { historyProblem, type Problem } from "../service/problem.ts";
import { movable, sha256 } from "./digest.ts";
import { collectWhenIdle } from "./heap.ts";
import { writesOver } from "./history.ts";

/** The entry of a thread that works for the event loop: it carries out the tasks that it is sent, and reports when it is ready. */
export type Task =
  | { readonly of: "decide"; readonly asked: OffThreadAsk }
  | { readonly of: "snapshot"; readonly bytes: Uint8Array }
  | { readonly of: "report"; readonly bytes: Uint8Array }
  | { readonly of: "route"; readonly request: OffThreadRequest };
export type Order = { readonly number: number; readonly task: Task } | { readonly abandoned: number };
export type Delivery =
  | "ready"
  | { readonly number: number; readonly done: unknown }
  | { readonly number: number; readonly fault: string }
  /** The decision is made and waits for the disk. */
  | { readonly number: number; readonly isWaiting: DecidedHead }
  | { readonly log: keyof Log; readonly fields: Readonly<Record<string, unknown>>; readonly message: string }
  | { readonly counted: keyof Counts; readonly args: readonly (string | number)[] };

/** The server's settings that the routes need. */
export interface RoutesOf {
  readonly history: StoreSetting;
  readonly limits: ApiLimits;
}
/** The workerData of a thread. */
export interface ThreadData {
  readonly evaluates: true;
  /**
   * Null if the thread has no server, and neither decides nor answers routes. `writes`: a port of the history's `connect`; null if
   * the thread writes its own store.
   */
  readonly server: (RoutesOf & { readonly writes: MessagePort | null }) | null;
}

if (parentPort !== null && workerData?.evaluates === true) serve(parentPort, workerData as ThreadData);

type DoTask<T> = (task: T, number: number, signal: AbortSignal) => Promise<unknown>;

function serve(port: MessagePort, { server }: ThreadData): void {
  const deliver = (delivery: Delivery, moved: readonly ArrayBuffer[] = []): void => port.postMessage(delivery, moved);
  const withHistory = server === null ? null : workOf(server, deliver);
  const work: DoTask<Task> = async (task, number, signal) => {
    if (task.of === "snapshot") return evaluateSnapshot(task.bytes, idsOf(sha256));
    if (task.of === "report") return readReport(task.bytes, sha256);
    if (withHistory === null) throw new Error("this thread has no history");
    return withHistory(task, number, signal);
  };
  const underWay = new Map<number, AbortController>();
  port.on("message", async (order: Order) => {
    if ("abandoned" in order) return underWay.get(order.abandoned)?.abort();
    const { number, task } = order;
    const gone = new AbortController();
    underWay.set(number, gone);
    try {
      const done = await work(task, number, gone.signal);
      deliver({ number, done }, movedIn(done));
    } catch (error) {
      deliver({ number, fault: String(errorFields(error)["stack"] ?? error) });
    }
    underWay.delete(number);
  });
  collectWhenIdle();
  deliver("ready");
}

/** The tasks that need the history. */
function workOf(
  { history, limits, writes }: NonNullable<ThreadData["server"]>,
  deliver: (delivery: Delivery) => void,
): DoTask<Exclude<Task, { readonly bytes: Uint8Array }>> {
  const said = (level: keyof Log) => (fields: Readonly<Record<string, unknown>>, message: string) =>
    deliver({ log: level, fields, message });
  const log: Log = { info: said("info"), warn: said("warn"), error: said("error") };
  const counted =
    (name: keyof Counts) =>
    (...args: (string | number)[]) =>
      deliver({ counted: name, args });
  const metrics: Counts = {
    decided: counted("decided"),
    refused: counted("refused"),
    recorded: counted("recorded"),
    historyFailed: counted("historyFailed"),
  };
  const evaluate = evaluator(sha256);
  const open = opener(history);
  const written = writes === null ? null : writesOver(writes);
  let routes: ReturnType<typeof routesOf> | undefined;

  const answered = async (asked: OffThreadAsk, number: number, signal: AbortSignal) => {
    const opened = await open();
    const read = opened.ok ? opened.value : unread(opened.error);
    const record: Store["record"] = (recording) => {
      const { id, kind, node, verdict } = recording.decision;
      deliver({ number, isWaiting: { id, kind, node, verdict } });
      // a decision that waits for the disk does not keep its body
      (asked.bytes.buffer as ArrayBuffer).transfer(0);
      return (written ?? read).record(recording);
    };
    const store = { ...read, record };
    const deps = { store, now, log, metrics, evaluate, sha256, recordDecisions: true };
    return decide({ ...asked, deps, signal });
  };
  return async (task, number, signal) => {
    if (task.of === "decide") return answered(task.asked, number, signal);
    const opened = await open();
    if (!opened.ok) return historyProblem(opened.error);
    routes ??= routesOf(opened.value, limits, log);
    const reply = await (await routes)(task.request, signal);
    if (!reply.ok) return reply;
    const body = inBytes(ok(reply.value.body));
    return body.ok ? ok({ ...reply.value, body: body.value }) : body;
  };
}

const now = () => epochMs(Date.now());

/** The connections of each thread to a database server. */
const FEW = 3;

/** Opens the history when it is first needed; after a failure, tries again the next time. */
function opener(setting: StoreSetting): () => Promise<Result<Store, StoreFailure>> {
  let opening: Promise<Result<Store, StoreFailure>> | undefined;
  return async () => {
    opening ??= storeAt(setting).open({ connections: FEW });
    const opened = await opening;
    if (!opened.ok) opening = undefined;
    return opened;
  };
}
/** A store for a history that cannot be opened for reading. */
function unread(failure: StoreFailure): DecidingStore {
  const fails = async (): Promise<Result<never, StoreFailure>> => err(failure);
  return { getSnapshot: fails, snapshotBytes: fails, getDecision: fails, readFacts: fails, record: fails };
}

/** Texts as UTF-8: bytes can be transferred to the event loop, while a text would be copied. */
const inBytes = <T>(made: Result<string | T, Problem>): Result<Uint8Array<ArrayBuffer> | T, Problem> =>
  made.ok && typeof made.value === "string" ? ok(new TextEncoder().encode(made.value)) : (made as Result<T, Problem>);

/** The buffers of a result to transfer: its bytes', or its body's. */
function movedIn(done: unknown): ArrayBuffer[] {
  const { value } = done as { readonly value?: unknown };
  const bytes = value instanceof Uint8Array ? value : (value as { readonly body?: unknown } | undefined)?.body;
  return bytes instanceof Uint8Array && bytes.length > 0 ? [bytes.buffer as ArrayBuffer] : [];
}

/** Loaded with the first such request: most threads only decide. */
async function routesOf(store: Store, limits: ApiLimits, log: Log) {
  const { offThreadApp } = await import("../app.ts");
  const { nodeAssets, gzip, nodeBodies } = await import("./assets.ts");
  return offThreadApp({
    store,
    now,
    log,
    metrics: plainMetrics(),
    bodies: nodeBodies,
    evaluate: evaluator(sha256),
    sha256,
    auth: { required: true, hosts: null },
    limits,
    recordDecisions: false,
    assets: nodeAssets(),
    gzip: (text) => movable(gzip(text)),
  });
}
