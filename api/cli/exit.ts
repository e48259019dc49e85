import type { Verdict } from "../model/decision.ts";
import { err, type Result } from "../model/result.ts";

/** What a script can tell from the exit code; `nodewise --help` states them. */
export const EXIT = {
  ok: 0,
  negative: 1,
  badInput: 2,
  cannotRun: 3,
  failed: 4,
  /** The kubelet does not start with the configuration. */
  refusesStart: 5,
  /** What shells make of SIGINT: work that can go on was ended by a person. */
  interrupted: 130,
} as const;
export type ExitCode = (typeof EXIT)[keyof typeof EXIT];

/** Why a command ends without its answer: lines for a person, each with its place and what to do next. */
export interface Fault {
  readonly exit: ExitCode;
  readonly lines: readonly string[];
}
/** How a command ends. */
export type Outcome = Result<ExitCode, Fault>;

export const fault = (exit: ExitCode, ...lines: readonly string[]): Result<never, Fault> => err({ exit, lines });

/** Verdicts that nobody has to act on. */
const GOOD: ReadonlySet<Verdict> = new Set<Verdict>(["decided", "calm", "keeps"]);
export const isGood = (verdict: Verdict): boolean => GOOD.has(verdict);
