import type { Form } from "../output.ts";

/** Where a status is read from. */
export interface SourceGiven {
  readonly statusUrl: string;
  readonly stateDir?: string;
}
interface ShownGiven extends SourceGiven {
  readonly namespace?: string;
  /** Seconds; absent: once. */
  readonly watch?: number;
  readonly output: Form;
}
export interface PodsGiven extends ShownGiven {
  readonly events?: boolean;
}

export const SORTS = ["cpu", "memory", "name"] as const;
export type Sort = (typeof SORTS)[number];
export interface TopGiven extends ShownGiven {
  readonly sort: Sort;
}
