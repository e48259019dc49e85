import { readFileSync } from "node:fs";
import packageJson from "../../../package.json" with { type: "json" };
import { ok, type Result } from "../../base/result.ts";
import { isLoopback } from "../../model/fields.ts";
import type { SamplerName } from "../../server/otlp/otlp.ts";
import type { ServeOptions } from "../../server.ts";
import type { Cli } from "../cli.ts";
import { EXIT, type Fault, fault } from "../terminal.ts";

export interface TelemetryFlags {
  readonly decisionLog?: string;
  readonly decisionLogTokenFile?: string;
  readonly decisionLogLabel?: Readonly<Record<string, string>>;
  readonly decisionLogErase?: readonly string[];
  readonly decisionLogMaxBytes?: number;
  readonly otlp?: string;
}
type Log = NonNullable<ServeOptions["decisionLog"]>;

/**
 * Reads the receivers of telemetry from flags and variables. Errors: a URL that cannot be posted to, a visible secret, a token
 * that cannot be read.
 */
export function telemetryOf(
  given: TelemetryFlags,
  cli: Cli,
): Result<Pick<ServeOptions, "decisionLog" | "otlp">, Fault> {
  const decisionLog = decisionLogOf(given, cli);
  if (!decisionLog.ok) return decisionLog;
  const otlp = otlpOf(given, cli);
  return otlp.ok ? ok({ ...decisionLog.value, ...otlp.value }) : otlp;
}

function decisionLogOf(given: TelemetryFlags, cli: Cli): Result<Pick<ServeOptions, "decisionLog">, Fault> {
  const { decisionLog: target, decisionLogLabel, decisionLogErase, decisionLogMaxBytes } = given;
  if (target === undefined) {
    const lonely = Object.keys(given).find(
      (name) => name.startsWith("decisionLog") && given[name as keyof TelemetryFlags] !== undefined,
    );
    return lonely === undefined || lonely === "decisionLogTokenFile"
      ? ok({})
      : fault(
          EXIT.badInput,
          "options of the decision log are given without --decision-log, which names its destination",
        );
  }
  const to = targetOf(target, given, cli);
  if (!to.ok) return to;
  const decisionLog: Log = {
    to: to.value,
    labels: decisionLogLabel ?? {},
    version: packageJson.version,
    erase: decisionLogErase ?? [],
    ...(decisionLogMaxBytes === undefined ? {} : { maxBytes: decisionLogMaxBytes }),
  };
  return ok({ decisionLog });
}

function targetOf(
  target: string,
  { decisionLogTokenFile: tokenFile }: TelemetryFlags,
  { env }: Cli,
): Result<Log["to"], Fault> {
  if (!/^[a-z][a-z\d+.-]*:\/\//i.test(target)) return ok({ file: target });
  const url = URL.parse(target);
  if (url === null || !/^https?:$/.test(url.protocol))
    return fault(EXIT.badInput, "--decision-log: expected a URL that begins with https:// or http://, or a file");
  if (url.username !== "" || url.password !== "")
    return fault(
      EXIT.badInput,
      "--decision-log: every user of this machine can see a password in the arguments: leave it out, and give --decision-log-token-file or set NODEWISE_DECISION_LOG_TOKEN",
    );
  const inEnvironment = env["NODEWISE_DECISION_LOG_TOKEN"] || null;
  const token = (): string | null =>
    tokenFile === undefined ? inEnvironment : readFileSync(tokenFile, "utf8").trim() || null;
  const isReadable = url.protocol === "http:" && !isLoopback(url.hostname);
  try {
    if (token() !== null && isReadable)
      return fault(
        EXIT.badInput,
        `--decision-log ${url.origin}: a token is not sent over http to another machine, where it can be read on the way: use https`,
      );
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    return fault(EXIT.badInput, `--decision-log-token-file ${tokenFile}: cannot be read (${code})`);
  }
  return ok({ url, token });
}

const PROTOCOL = "http/protobuf";
const SAMPLERS: readonly SamplerName[] = [
  "always_on",
  "always_off",
  "traceidratio",
  "parentbased_always_on",
  "parentbased_always_off",
  "parentbased_traceidratio",
];

/** From `--otlp`, or OpenTelemetry's variables: opentelemetry.io/docs/specs/otel/configuration/sdk-environment-variables. */
function otlpOf({ otlp }: TelemetryFlags, { env }: Cli): Result<Pick<ServeOptions, "otlp">, Fault> {
  const set = (name: string): string | undefined => env[name]?.trim() || undefined;
  const endpoints = ["", "_TRACES", "_METRICS"].map((signal) => set(`OTEL_EXPORTER_OTLP${signal}_ENDPOINT`));
  if (otlp === undefined && endpoints.every((one) => one === undefined)) return ok({});
  if (set("OTEL_SDK_DISABLED")?.toLowerCase() === "true") return ok({});
  if (otlp !== undefined) {
    const url = URL.parse(otlp);
    if (
      url === null ||
      !/^https?:$/.test(url.protocol) ||
      url.username !== "" ||
      url.password !== "" ||
      url.search !== ""
    )
      return fault(
        EXIT.badInput,
        "--otlp: expected the http:// or https:// URL of a collector without a password or a query, such as http://127.0.0.1:4318; OTEL_EXPORTER_OTLP_HEADERS may hold a token",
      );
  }
  for (const name of [
    "OTEL_EXPORTER_OTLP_PROTOCOL",
    "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL",
    "OTEL_EXPORTER_OTLP_METRICS_PROTOCOL",
  ])
    if ((set(name) ?? PROTOCOL) !== PROTOCOL)
      return fault(EXIT.badInput, `${name}: only ${PROTOCOL} is supported here, which collectors accept on port 4318`);
  const isExported = (signal: "TRACES" | "METRICS", own: string | undefined): boolean =>
    set(`OTEL_${signal}_EXPORTER`) !== "none" && [otlp, endpoints[0], own].some((one) => one !== undefined);
  const named = set("OTEL_TRACES_SAMPLER") ?? "parentbased_always_on";
  const sampler = SAMPLERS.find((one) => one === named);
  const ratio = Number(set("OTEL_TRACES_SAMPLER_ARG") ?? 1);
  if (sampler === undefined) return fault(EXIT.badInput, `OTEL_TRACES_SAMPLER: expected one of ${SAMPLERS.join(", ")}`);
  if (!(ratio >= 0 && ratio <= 1))
    return fault(EXIT.badInput, "OTEL_TRACES_SAMPLER_ARG: expected a number from 0 to 1");
  const intervalMs = Number(set("OTEL_METRIC_EXPORT_INTERVAL") ?? 60_000);
  if (!(intervalMs >= 1)) return fault(EXIT.badInput, "OTEL_METRIC_EXPORT_INTERVAL: expected milliseconds");
  return ok({
    otlp: {
      url: otlp?.replace(/\/+$/, "") ?? null,
      traces: isExported("TRACES", endpoints[1]),
      metrics: isExported("METRICS", endpoints[2]),
      sampler,
      ratio,
      intervalMs,
      version: packageJson.version,
    },
  });
}
