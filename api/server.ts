import { isIPv6 } from "node:net";
import { availableParallelism } from "node:os";
import { getHeapStatistics } from "node:v8";
import type { StoreFailure } from "../db/failure.ts";
import { type StoreLocation, type StoreSetting, storeAt } from "../db/open/node.ts";
import type { Store } from "../db/store.ts";
import { createApp } from "./app.ts";
import { DAY_MS } from "./base/duration.ts";
import { LIMITS } from "./base/limits.ts";
import { err, ok, type Result } from "./base/result.ts";
import type { ApiDeps, ApiLimits, AuthSettings } from "./dependencies.ts";
import { TRUSTED } from "./http/serve.ts";
import { prepareDecoding } from "./model/decode.ts";
import { isLoopback } from "./model/fields.ts";
import { epochMs } from "./model/units.ts";
import type { Log } from "./observe/log.ts";
import { type NodeMetrics, nodeMetrics } from "./observe/node-metrics.ts";
import { pinoLog } from "./observe/pino-log.ts";
import { type Metrics, plainMetrics } from "./observe/plain-metrics.ts";
import { DEFAULT_RETENTION, type Retention } from "./retention.ts";
import { gzip, nodeAssets, nodeBodies } from "./server/assets.ts";
import type { DecisionLogSetting } from "./server/decision-log/start.ts";
import { sha256 } from "./server/digest.ts";
import { collectWhenIdle, growWithHeap } from "./server/heap.ts";
import { type History, openHistory, startPruning } from "./server/history.ts";
import { type ListeningServer, listen, whenSent } from "./server/listen.ts";
import type { Otlp, OtlpSetting } from "./server/otlp/otlp.ts";
import { PostedBodies } from "./server/posted-bodies.ts";
import { type Threads, threads, warmUp } from "./server/threads.ts";
import { type KeyPair, readKeyPair, reloadRenewed, type TlsFiles } from "./server/tls.ts";
import { type TaskQueue, taskQueue } from "./service/task-queue.ts";

const DEFAULT_HOST = "127.0.0.1";
const DEFAULT_PORT = 8787;

export type ApiOptions = StoreSetting & ServeOptions;
export interface ServeOptions {
  readonly host?: string;
  /** 0 for any free port. */
  readonly port?: number;
  /** Serves HTTPS with these files, which are read again when they change. Default: plain HTTP. */
  readonly tls?: TlsFiles;
  /** SHA-256 (hex) of a token that may do everything. If set, a token is required on loopback too. */
  readonly adminTokenHash?: string;
  /** Host names, in addition to those of loopback, that requests without a token may use. */
  readonly allowedHosts?: readonly string[];
  /** A reverse proxy in front sets X-Forwarded-Host, which Origin is then compared with. Default: false. */
  readonly trustForwardedHost?: boolean;
  readonly limits?: Partial<ApiLimits>;
  readonly retention?: Partial<Retention>;
  /**
   * The number of threads that decide on large snapshots and render pages, from the start on; one more writes the history. 0: the
   * event loop does everything. Default: threads start when there is work and end when there is none; at most `maxThreads`.
   */
  readonly threads?: number;
  /** Render each kind of page once after the start, so that the first visitor does not wait for it. Default: false. */
  readonly warm?: boolean;
  /** Sends recorded decisions to a receiver. Default: none. */
  readonly decisionLog?: DecisionLogSetting;
  /** Exports traces and metrics over OTLP. Default: none. */
  readonly otlp?: OtlpSetting;
  /** Default: JSON lines on standard error. */
  readonly log?: Log;
}

export interface RunningApi {
  /** Without a trailing slash. */
  readonly url: string;
  readonly port: number;
  /** False: everyone who can reach the port may send requests. */
  readonly requiresToken: boolean;
  /** The app itself, for a caller in this process, which needs no token. */
  fetch(request: Request): Promise<Response>;
  /** Stops accepting connections, ends open requests, and closes the history. */
  close(): Promise<void>;
}

const DEFAULT_LIMITS: ApiLimits = { bodyBytes: LIMITS.bodyBytes, concurrency: 512 };
const GRACE_MS = 10_000;
/**
 * See `NodeTurnsDeps`. If other processes write the history too, nothing waits, as a node's next turn may be theirs. The time is
 * far below the one after which a node counts as silent.
 */
const HOLD_MS = 10 * 60_000;
/** Enough for some 11,000 nodes of ten pods. */
const NODE_STATE_BYTES = 1280 * 1024 * 1024;
/** On a small machine V8 ends the process before its heap is that large; requests and garbage take the other half. */
const maxNodeStateBytes = (): number => Math.min(NODE_STATE_BYTES, getHeapStatistics().heap_size_limit / 2);
const MAX_THREADS = 8;
/** One CPU is left for the event loop, the thread that writes the history, and garbage collection. */
const maxThreads = (): number => Math.min(Math.max(1, availableParallelism() - 1), MAX_THREADS);
/** The most pages with a live stream; further ones poll. */
const MAX_STREAMS = 256;

/** Why the API does not start. */
interface StartFailure {
  /** `usage`: the options do not allow it; `failed`: the history or the address cannot be used. */
  readonly code: "usage" | "failed";
  /** One line that says what to do. */
  readonly message: string;
}
const failed = (message: string): Result<never, StartFailure> => err({ code: "failed", message });

/** Opens the history and serves the API on Node. Errors: no history, no address, no token. */
export async function startApi(options: ApiOptions): Promise<Result<RunningApi, StartFailure>> {
  const pair = options.tls === undefined ? ok(undefined) : readKeyPair(options.tls, Date.now());
  if (!pair.ok) return failed(pair.error);
  const tasks = taskQueue();
  const location = storeAt(options);
  const maxAgeMs = options.retention?.maxAgeMs;
  const onWait = (reason: string): void => (options.log ?? pinoLog()).warn({ reason }, "history not open yet");
  const history =
    options.threads === 0 || location.isShared
      ? withoutThread(await location.open({ onWait, ...(maxAgeMs === undefined ? {} : { maxAgeMs }) }))
      : await openHistory(location.setting, tasks);
  if (!history.ok) return failed(history.error.message);
  const started = await serve(history.value, location, tasks, options, pair.value);
  if (!started.ok) await history.value.store.close();
  return started;
}

/** Loaded only if it is configured. */
async function openOtlp(setting: OtlpSetting | undefined, log: Log, metrics: NodeMetrics): Promise<Otlp | null> {
  if (setting === undefined) return null;
  return (await import("./server/otlp/otlp.ts")).startOtlp(setting, log, metrics.otlp());
}

/** Loaded only if it is configured. */
async function deliverLog(
  setting: DecisionLogSetting | undefined,
  { metrics, ...ports }: Pick<ApiDeps, "store" | "log"> & { readonly tasks: TaskQueue; readonly metrics: NodeMetrics },
): Promise<Result<{ close(): Promise<void> } | null, string>> {
  if (setting === undefined) return ok(null);
  const { startDecisionLog } = await import("./server/decision-log/start.ts");
  return startDecisionLog(setting, { ...ports, metrics: metrics.decisionLog() });
}

function withoutToken(host: string, revoked: number, { flags }: StoreLocation): Result<never, StartFailure> {
  const none = `there is none${revoked > 0 ? " that is not revoked" : ""}`;
  const way = `run \`nodewise token create ${flags}\` first, or listen on ${DEFAULT_HOST}`;
  return err({ code: "usage", message: `listening on ${host} needs a token, and ${none}: ${way}` });
}

const limitsOf = ({ limits }: ServeOptions): ApiLimits => ({ ...DEFAULT_LIMITS, ...limits });

function retentionOf({ retention = {} }: ServeOptions, { flags }: StoreLocation) {
  const days = Math.ceil((retention.maxAgeMs ?? DEFAULT_RETENTION.maxAgeMs) / DAY_MS);
  return { retention, confirm: `nodewise history prune --confirm --keep-days ${days} ${flags}` };
}

const withoutThread = (store: Result<Store, StoreFailure>): Result<Pick<History, "store">, StoreFailure> =>
  store.ok ? ok({ store: store.value }) : store;

async function serve(
  { store, connect }: Pick<History, "store"> & Partial<History>,
  location: StoreLocation,
  tasks: TaskQueue,
  options: ServeOptions,
  tls: KeyPair | undefined,
): Promise<Result<RunningApi, StartFailure>> {
  const { host = DEFAULT_HOST, port = DEFAULT_PORT } = options;
  const open = isLoopback(host) && options.adminTokenHash === undefined;
  const tokens = await store.countTokens();
  if (!tokens.ok) return failed(tokens.error.message);
  const { active, revoked } = tokens.value;
  if (!open && active === 0 && options.adminTokenHash === undefined) return withoutToken(host, revoked, location);
  const ownLog = options.log === undefined ? pinoLog() : null;
  const log = options.log ?? (ownLog as Log);
  const metrics = nodeMetrics();
  const decisionLog = await deliverLog(options.decisionLog, { store, log, metrics, tasks });
  if (!decisionLog.ok) return failed(decisionLog.error);
  const deciding = threads(options.threads ?? maxThreads(), {
    least: options.threads ?? 0,
    server:
      options.threads === 0
        ? null
        : { history: location.setting, limits: limitsOf(options), connect: connect ?? (() => null) },
    log,
    metrics,
    tasks,
  });
  const otlp = await openOtlp(options.otlp, log, metrics);
  const closing = new AbortController();
  const atEnd: (() => Promise<void>)[] = [];
  const deps: ApiDeps = {
    ...portsOf(store, log, metrics, deciding, open, closing.signal, options),
    ...otlp?.ports,
    postedBodies: new PostedBodies(),
    nodeStates: {
      maxBytes: maxNodeStateBytes(),
      holdMs: location.isShared ? 0 : HOLD_MS,
      atEnd: (work) => void atEnd.push(work),
    },
  };
  const app = createApp(deps);
  const ask = async (request: Request): Promise<Response> => app.fetch(request, { [TRUSTED]: true });
  prepareDecoding();
  const listening = await listen(app, { host, port, tasks, ...(tls === undefined ? {} : { tls }) });
  if (!listening.ok) {
    await Promise.all([deciding.close(), decisionLog.value?.close(), otlp?.close()]);
    return failed(listening.error);
  }
  const pruning = startPruning(store, now, log, { metrics, ...retentionOf(options, location) });
  otlp?.exportMetrics(async () => (await ask(new Request(`${url}/metrics`))).text());
  const [endCollecting, endGrowing] = [collectWhenIdle(), growWithHeap()];
  const { tlsServer } = listening.value;
  const url = urlOf(host, listening.value);
  const endRenewal =
    tlsServer === null || options.tls === undefined ? () => {} : reloadRenewed(tlsServer, options.tls, log);
  const requiresToken = !open || active + revoked > 0;
  log.info({ url, requiresToken }, "listening");
  if (active === 0 && revoked > 0 && options.adminTokenHash === undefined)
    log.warn({ url, revoked }, "all tokens are revoked: every request is refused");
  const warming = options.warm === true ? warmUp(createApp(unobserved(deps)), closing.signal) : undefined;
  return ok({
    url,
    port: listening.value.port,
    requiresToken,
    fetch: ask,
    close: async () => {
      pruning.stop();
      endCollecting();
      endGrowing();
      endRenewal();
      closing.abort();
      await listening.value.close(GRACE_MS);
      await warming;
      const otlpClosed = otlp?.close();
      await deciding.close();
      for (const work of atEnd) await work();
      await Promise.all([otlpClosed, decisionLog.value?.close()]);
      await store.close();
      log.info({ url }, "closed");
      ownLog?.flush();
    },
  });
}

const now = () => epochMs(Date.now());
const portsOf = (
  store: Store,
  log: Log,
  metrics: Metrics,
  deciding: Threads,
  open: boolean,
  closing: AbortSignal,
  options: ServeOptions,
): ApiDeps => ({
  store,
  now,
  log,
  metrics,
  bodies: nodeBodies,
  whenSent,
  evaluate: deciding.evaluate,
  offThread: deciding.offThread,
  sha256,
  auth: authSettings(open, options),
  limits: limitsOf(options),
  recordDecisions: true,
  streams: { closing, limit: MAX_STREAMS },
  assets: nodeAssets(),
  gzip,
});

/** For requests that the server itself makes: neither logged nor counted. */
const unobserved = (deps: ApiDeps): ApiDeps => ({
  ...deps,
  log: { info() {}, warn() {}, error() {} },
  metrics: plainMetrics(),
});

const urlOf = (host: string, { tlsServer, port }: ListeningServer): string =>
  `${tlsServer === null ? "http" : "https"}://${hostText(host)}:${port}`;
const hostText = (host: string): string => (isIPv6(host) ? `[${host}]` : host);

/**
 * Beyond loopback a token is always required; on loopback, until the first token is created, everyone may use the API by its own
 * host names.
 */
function authSettings(
  open: boolean,
  { host = DEFAULT_HOST, allowedHosts = [], trustForwardedHost = false, adminTokenHash }: ServeOptions,
): AuthSettings {
  const names = ["localhost", "127.0.0.1", "[::1]", hostText(host), ...allowedHosts];
  return {
    required: !open,
    trustForwardedHost,
    hosts: open ? new Set(names.map((name) => name.toLowerCase())) : null,
    ...(adminTokenHash === undefined ? {} : { adminTokenHash }),
  };
}
