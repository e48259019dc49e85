import { err, ok, type Result } from "../api/base/result.ts";

const STORE_FAILURE_CODES = ["unavailable", "too_large", "corrupt", "not_migrated", "bad_page_token"] as const;
export type StoreFailureCode = (typeof STORE_FAILURE_CODES)[number];

/** An expected fault of the history, with one line of advice. */
export interface StoreFailure {
  readonly code: StoreFailureCode;
  readonly message: string;
  /** True: only this row is damaged; others can be read. */
  readonly isRow?: true;
}

export const failure = (code: StoreFailureCode, message: string): Result<never, StoreFailure> => err({ code, message });

/** drizzle's own message contains the statement with its parameters, and thus callers' data; its `cause` says what went wrong. */
const isWrapping = (error: Error): boolean => /^Failed query/.test(error.message) && error.cause instanceof Error;

/** Converts a driver's error into a failure; null: it is a mistake of this program. */
export type Classify = (thrown: unknown) => StoreFailure | null;

/** `classify` for an error and those that it wraps as `cause`, as drizzle and D1 do. */
export const withCauses =
  (classify: (error: Error & { code?: unknown }) => StoreFailure | null): Classify =>
  (thrown) => {
    for (let at = thrown, depth = 0; at instanceof Error && depth < 5; at = at.cause, depth++) {
      const found = isWrapping(at) ? null : classify(at);
      if (found !== null) return found;
    }
    return null;
  };

/** Runs work against a driver. What the storage does wrong becomes a value, what this program does wrong throws on. */
export type Attempt = <T>(work: () => Promise<Result<T, StoreFailure>>) => Promise<Result<T, StoreFailure>>;
export const attempting =
  (failureOf: Classify): Attempt =>
  async (work) => {
    try {
      return await work();
    } catch (error) {
      const found = failureOf(error);
      if (found === null) throw error;
      return err(found);
    }
  };

/** A row that cannot be read; `message` names it. */
export const corruptRow = (message: string): Result<never, StoreFailure> =>
  err({ code: "corrupt", message, isRow: true });

/** Treats a damaged row as absent, for callers that can use the rest without it. */
export const unlessDamaged = <T>(read: Result<T, StoreFailure>): Result<T | null, StoreFailure> =>
  !read.ok && read.error.isRow === true ? ok(null) : read;
