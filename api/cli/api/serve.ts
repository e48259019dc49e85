import { ok, type Result } from "../../model/result.ts";
import type { Log } from "../../observe/log.ts";
import { type ApiOptions, type RunningApi, startApi } from "../../server.ts";
import { type ApiFlags, stateHome } from "../api-options.ts";
import type { Cli } from "../cli.ts";
import { EXIT, type Fault, fault, type Outcome, stopSignal } from "../terminal.ts";

const DAY_MS = 24 * 3600 * 1000;

/** Starts the API as flags and variables say. Errors: the history or the address cannot be used, or not without a token. */
export async function startServing(given: ApiFlags, { env }: Cli, log?: Log): Promise<Result<RunningApi, Fault>> {
  const {
    port,
    host,
    allowHost,
    trustForwardedHost,
    maxBodyBytes,
    maxConcurrency,
    maxBytesInFlight,
    minBodyRate,
    metricsNodes,
    keepDays,
    keepDecisions,
  } = given;
  const options: ApiOptions = {
    dataDir: given.dataDir ?? stateHome(env),
    warm: true,
    ...(port === undefined ? {} : { port }),
    ...(host === undefined ? {} : { host }),
    ...(allowHost === undefined ? {} : { allowedHosts: allowHost }),
    ...(trustForwardedHost === undefined ? {} : { trustForwardedHost }),
    limits: {
      ...(maxBodyBytes === undefined ? {} : { bodyBytes: maxBodyBytes }),
      ...(maxConcurrency === undefined ? {} : { concurrency: maxConcurrency }),
      ...(maxBytesInFlight === undefined ? {} : { bodyBytesInFlight: maxBytesInFlight }),
      ...(minBodyRate === undefined ? {} : { bodyBytesPerSecond: minBodyRate }),
      ...(metricsNodes === undefined ? {} : { metricsNodes }),
    },
    retention: {
      ...(keepDays === undefined ? {} : { maxAgeMs: keepDays * DAY_MS }),
      ...(keepDecisions === undefined ? {} : { maxRowsPerNode: keepDecisions }),
    },
    ...(log === undefined ? {} : { log }),
  };
  const api = await startApi(options);
  return api.ok ? api : fault(api.error.code === "usage" ? EXIT.badInput : EXIT.failed, api.error.message);
}

/** `nodewise api`: the address on standard output once it listens, the log on standard error, until a signal. */
export async function serve(given: ApiFlags, cli: Cli): Promise<Outcome> {
  const stop = stopSignal();
  const api = await startServing(given, cli);
  if (!api.ok) return api;
  cli.terminal.write(`${api.value.url}\n`);
  await stop;
  await api.value.close();
  return ok(EXIT.ok);
}
