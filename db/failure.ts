import { err, ok, type Result } from "../api/model/result.ts";

const STORE_FAILURE_CODES = ["unavailable", "too_large", "corrupt", "not_migrated", "bad_page_token"] as const;
export type StoreFailureCode = (typeof STORE_FAILURE_CODES)[number];

/** An expected fault of the history, with one line that says what to do about it. */
export interface StoreFailure {
  readonly code: StoreFailureCode;
  readonly message: string;
  /** The damage is one row's own: the others can be read. */
  readonly isRow?: true;
}

export const failure = (code: StoreFailureCode, message: string): Result<never, StoreFailure> => err({ code, message });

/** A row that cannot be read; `message` names it. */
export const corruptRow = (message: string): Result<never, StoreFailure> =>
  err({ code: "corrupt", message, isRow: true });

/** Reads a row that is damaged by itself as if it were not there: for callers that can tell the rest without it. */
export const unlessDamaged = <T>(read: Result<T, StoreFailure>): Result<T | null, StoreFailure> =>
  !read.ok && read.error.isRow === true ? ok(null) : read;
