import { existsSync } from "node:fs";
import { open } from "node:fs/promises";
import { join } from "node:path";
import { answerText, MOST_ANSWER_BYTES } from "../../../actuator/answer-text.ts";
import { decodeStatus } from "../../../actuator/status/decode-status.ts";
import type { NodeStatus } from "../../../actuator/status/node-status.ts";
import { statusFile } from "../../../actuator/status/status-file.ts";
import { ok, type Result } from "../../model/result.ts";
import type { Cli } from "../cli.ts";
import { stateHome } from "../directories.ts";
import { EXIT, type Fault, fault } from "../exit.ts";
import type { SourceGiven } from "./given.ts";

export interface Seen {
  readonly status: NodeStatus;
  /** The file that it was read from; null: the daemon answered it now. */
  readonly file: string | null;
}
/** Errors: it does not answer, or what came is no status; with what to do next. */
export type ReadStatus = () => Promise<Result<Seen, Fault>>;

const TIMEOUT_MS = 10_000;

/** How a status is read: from a state directory where one is named, else of the running daemon. Errors: no address. */
export function statusSource({ statusUrl, stateDir }: SourceGiven, { env }: Cli): Result<ReadStatus, Fault> {
  if (stateDir !== undefined) return ok(() => readFile(statusFile(stateDir)));
  const url = URL.parse(statusUrl);
  if (url === null || !/^https?:$/.test(url.protocol) || url.username !== "")
    return fault(EXIT.badInput, `--status-url: \`${statusUrl}\` is not an address such as http://127.0.0.1:10260`);
  return ok(() => ask(url, env));
}

async function ask(base: URL, env: Cli["env"]): Promise<Result<Seen, Fault>> {
  const url = new URL("v1/status", base.href.endsWith("/") ? base : `${base.href}/`);
  try {
    const response = await fetch(url, { redirect: "error", signal: AbortSignal.timeout(TIMEOUT_MS) });
    const text = await answerText(response);
    if (text === null) return fault(EXIT.failed, `${url.href} answered more than a status: is this a nodewise daemon?`);
    if (!response.ok) return fault(EXIT.failed, `${url.href} answered ${response.status}${detailIn(text)}`);
    const status = decodeStatus(text);
    if (status.ok) return ok({ status: status.value, file: null });
    return fault(EXIT.failed, `${url.href}: ${status.error}: is this a nodewise daemon, of this version?`);
  } catch (error) {
    const { cause, message, name } = error as {
      cause?: { code?: string; message?: string };
      message: string;
      name: string;
    };
    const why = name === "TimeoutError" ? `in ${TIMEOUT_MS / 1000} s` : (cause?.code ?? cause?.message ?? message);
    return fault(EXIT.failed, `${base.origin} does not answer (${why}): ${adviceWhenAway(env)}`);
  }
}

function adviceWhenAway(env: Cli["env"]): string {
  const start =
    "is `nodewise actuator` running there, with pods to run or statusListen set? Name that address with --status-url";
  const usual = join(stateHome(env), "actuator");
  const file = existsSync(statusFile(usual)) ? usual : "DIR";
  return `${start}, or see what it last wrote with --state-dir ${file}`;
}

/** ` wrong_host: …` of a problem; empty for anything else. */
function detailIn(text: string): string {
  try {
    const { code, detail } = JSON.parse(text) as Readonly<Record<string, unknown>>;
    return typeof code === "string" ? ` ${code}: ${String(detail)}` : ": is this a nodewise daemon?";
  } catch {
    return ": is this a nodewise daemon?";
  }
}

async function readFile(file: string): Promise<Result<Seen, Fault>> {
  try {
    const text = await textOf(file);
    if (text === null) return fault(EXIT.failed, `${file} is larger than any status`);
    const status = decodeStatus(text);
    return status.ok ? ok({ status: status.value, file }) : fault(EXIT.failed, `${file}: ${status.error}`);
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    const advice =
      code === "ENOENT" ? "no daemon wrote there: --state-dir is the daemon's own" : "is it another user's daemon?";
    return fault(EXIT.failed, `${file}: ${code ?? message}: ${advice}`);
  }
}

/** Null: it is too long. Throws what the system answers. */
async function textOf(file: string): Promise<string | null> {
  const handle = await open(file, "r");
  try {
    const { size } = await handle.stat();
    return size > MOST_ANSWER_BYTES ? null : await handle.readFile("utf8");
  } finally {
    await handle.close();
  }
}
