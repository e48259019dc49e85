import type { SourceFlags } from "../inputs/daemon-status.ts";
import type { Form } from "../terminal.ts";

interface ShownFlags extends SourceFlags {
  readonly namespace?: string;
  /** Seconds; absent for once. */
  readonly watch?: number;
  readonly output: Form;
}
export interface PodsFlags extends ShownFlags {
  readonly events?: boolean;
}

export const SORTS = ["cpu", "memory", "name"] as const;
export type Sort = (typeof SORTS)[number];
export interface TopFlags extends ShownFlags {
  readonly sort: Sort;
}
