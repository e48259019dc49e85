import { DAY_MS } from "../../base/duration.ts";
import type { Result } from "../../base/result.ts";
import { type ApiOptions, type RunningApi, startApi } from "../../server.ts";
import { type ApiFlags, storeSetting } from "../api-options.ts";
import type { Cli } from "../cli.ts";
import { EXIT, type Fault, fault, type Outcome, stopSignal } from "../terminal.ts";
import { type TelemetryFlags, telemetryOf } from "./telemetry.ts";

/**
 * Starts the API with flags, variables and the caller's additions. Errors: the history or the address cannot be used, or a token
 * is missing.
 */
export async function startServing(
  given: ApiFlags,
  cli: Cli,
  more: Pick<ApiOptions, "log" | "decisionLog" | "otlp"> = {},
): Promise<Result<RunningApi, Fault>> {
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
    threads,
    keepDays,
    keepDecisions,
    tlsCert,
    tlsKey,
    adminTokenSha256,
  } = given;
  if ((tlsCert === undefined) !== (tlsKey === undefined)) {
    const [one, other] = tlsCert === undefined ? ["--tls-key", "--tls-cert"] : ["--tls-cert", "--tls-key"];
    return fault(EXIT.badInput, `${one} is given without ${other}: HTTPS needs the certificate and its private key`);
  }
  // the value is not shown: it may be the token itself
  if (adminTokenSha256 !== undefined && !/^[0-9a-f]{64}$/i.test(adminTokenSha256))
    return fault(
      EXIT.badInput,
      "--admin-token-sha256 (NODEWISE_TOKEN_SHA256): expected 64 hex digits, as `nodewise token generate` prints them",
    );
  const setting = storeSetting(given, cli);
  if (!setting.ok) return setting;
  const options: ApiOptions = {
    ...setting.value,
    ...more,
    // warming up is of no use for threads that end when idle
    warm: threads !== undefined,
    ...(threads === undefined ? {} : { threads }),
    ...(port === undefined ? {} : { port }),
    ...(host === undefined ? {} : { host }),
    ...(tlsCert === undefined || tlsKey === undefined ? {} : { tls: { certFile: tlsCert, keyFile: tlsKey } }),
    ...(adminTokenSha256 === undefined ? {} : { adminTokenHash: adminTokenSha256.toLowerCase() }),
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
  };
  const api = await startApi(options);
  return api.ok ? api : fault(api.error.code === "usage" ? EXIT.badInput : EXIT.failed, api.error.message);
}

export type ServeFlags = ApiFlags & TelemetryFlags;

/** `nodewise api`: runs until a signal; prints the address on standard output once it listens, and the log on standard error. */
export async function serve(given: ServeFlags, cli: Cli): Promise<Outcome> {
  const telemetry = telemetryOf(given, cli);
  if (!telemetry.ok) return telemetry;
  const { decisionLog } = telemetry.value;
  const hasFile = decisionLog !== undefined && "file" in decisionLog.to;
  // log rotation sends SIGHUP; the file is checked before each write anyway
  if (hasFile) process.on("SIGHUP", () => {});
  const stop = stopSignal(hasFile ? ["SIGINT", "SIGTERM"] : undefined);
  const api = await startServing(given, cli, telemetry.value);
  if (!api.ok) return api;
  cli.terminal.write(`${api.value.url}\n`);
  await stop;
  await api.value.close();
  // an exporter that has given up would keep the process alive until its own timeout
  process.exit(EXIT.ok);
}
