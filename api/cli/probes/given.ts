import type { SourceGiven } from "../pods/read-status.ts";
import type { Form } from "../terminal.ts";

export interface ProbesGiven extends SourceGiven {
  readonly namespace?: string;
  /** Those that are not well only. */
  readonly failing?: true;
  /** Seconds; absent: once. */
  readonly watch?: number;
  readonly output: Form;
}
export interface ProbeHistoryGiven {
  readonly stateDir?: string;
  /** NAMESPACE/NAME. */
  readonly pod?: string;
  readonly limit: number;
  readonly output: Form;
}
export interface ProbeOutcomesGiven {
  readonly stateDir?: string;
  /** NAMESPACE/NAME. */
  readonly pod: string;
  readonly container?: string;
}
export interface ProbePlanGiven extends SourceGiven {
  /** Milliseconds. */
  readonly execMs?: number;
  readonly output: Form;
}
