import type { RemovalEnd, RemovalFilter } from "../../../db/removal.ts";
import type { Result } from "../../model/result.ts";
import type { Fault, Form } from "../terminal.ts";
import type { Times } from "./history.ts";
import type { ListedRemoval, Summary } from "./removals-table.ts";

/** Where removals are read from: a data directory, or a running API. */
export interface RemovalSource {
  /** The newest, at most `limit`. */
  list(filter: RemovalFilter, limit: number): Promise<Result<readonly ListedRemoval[], Fault>>;
  summarize(node: string, times: Times): Promise<Result<Summary, Fault>>;
}

export interface RemovalsGiven {
  readonly dataDir?: string;
  readonly api?: string;
  readonly tokenFile?: string;
  readonly node: string;
  readonly summary?: boolean;
  readonly image?: string;
  readonly search?: string;
  readonly end?: RemovalEnd;
  readonly since?: string;
  readonly until?: string;
  readonly limit: number;
  readonly output: Form;
}
