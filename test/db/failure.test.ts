import { describe, expect, test } from "vitest";
import { ok } from "../../api/base/result.ts";
import { attempting } from "../../db/failure.ts";
import { decodePageToken, encodePageToken } from "../../db/rows.ts";
import { failureOf } from "../../db/sqlite/dialect.ts";

const attempt = attempting(failureOf);
const coded = (code: string, message: string): Error => Object.assign(new Error(message), { code });

describe("an error thrown by a database driver", () => {
  test.each([
    ["unavailable", coded("SQLITE_FULL", "database or disk is full")],
    ["unavailable", coded("SQLITE_BUSY", "database is locked")],
    ["unavailable", coded("SQLITE_IOERR_WRITE", "disk I/O error")],
    ["unavailable", coded("SQLITE_READONLY_DBMOVED", "attempt to write a readonly database")],
    ["corrupt", coded("SQLITE_CORRUPT_INDEX", "database disk image is malformed")],
    ["corrupt", coded("SQLITE_NOTADB", "file is not a database")],
    ["too_large", new Error("D1_ERROR: string or blob too big: SQLITE_TOOBIG")],
    ["not_migrated", new Error("D1_ERROR: no such table: nodes: SQLITE_ERROR")],
    ["not_migrated", new Error("D1_ERROR: table series has no column named count: SQLITE_ERROR")],
    ["unavailable", new Error("D1_ERROR: D1 DB is overloaded. Too many requests queued.")],
    ["unavailable", new Error("Failed query", { cause: new Error("D1_ERROR: Network connection lost.") })],
  ])("is `%s`: %s", (code, error) => {
    expect(failureOf(error)).toMatchObject({ code, message: expect.stringMatching(/^the history [^\n]*; [^\n]+$/) });
  });

  test.each([
    "Network connection lost.",
    "D1 DB is overloaded. Requests queued for too long.",
    "D1 DB is overloaded. Too many requests queued.",
    "D1 DB reset because its code was updated.",
    "D1 DB storage operation exceeded timeout which caused object to be reset.",
    "D1 DB's isolate exceeded its memory limit and was reset.",
    "D1 DB exceeded its CPU time limit and was reset.",
    "Internal error in D1 DB storage caused object to be reset.",
    "Internal error while starting up D1 DB storage caused object to be reset.",
    "Cannot resolve D1 DB due to transient issue on remote node.",
    "Can't read from request stream because client disconnected.",
    "Exceeded maximum DB size",
    "Your account has exceeded D1's maximum account storage limit, please contact Cloudflare to raise your limit",
    "Currently processing a long-running export.",
    "Too many API requests by single worker invocation.",
    "Too many subrequests.",
    "Too many subrequests by single Worker invocation.",
    "The Durable Object's code has been updated, this version can no longer access storage.",
    "internal error; reference = 3kq2",
  ])("is `unavailable` when D1 says so, with its prefix, without it and wrapped: %s", (words) => {
    for (const message of [words, `D1_ERROR: ${words}`]) {
      const wrapped = new Error("Failed query: select 1\nparams: no such table", { cause: new Error(message) });
      for (const error of [new Error(message), wrapped])
        expect(failureOf(error)).toMatchObject({
          code: "unavailable",
          message: expect.stringMatching(/^the history failed: [^\n]*[^.]; [a-z][^\n]+$/),
        });
    }
  });

  test("is not classified by text in a statement's parameters", () => {
    const mistake = coded("SQLITE_ERROR", 'near "SELEC": syntax error');
    for (const written of ["Network connection lost.", "no such table: x", "SQLITE_BUSY"])
      expect(failureOf(new Error(`Failed query: selec 1\nparams: ${written}`, { cause: mistake }))).toBeNull();
  });

  test.each([
    coded("SQLITE_CONSTRAINT_NOTNULL", "NOT NULL constraint failed"),
    coded("SQLITE_ERROR", 'near "SELEC": syntax error'),
    new Error("D1_ERROR: NOT NULL constraint failed: t.y: SQLITE_CONSTRAINT"),
    new TypeError("undefined is not a function"),
  ])("is rethrown when it is a bug of the program: %s", async (error) => {
    expect(failureOf(error)).toBeNull();
    await expect(attempt(() => Promise.reject(error))).rejects.toBe(error);
  });

  test("does not change successful answers of attempt()", async () => {
    expect(await attempt(async () => ok(1))).toEqual(ok(1));
  });
});

test("a page token decodes to the position that it was made of, whatever the numbers", () => {
  for (const atMs of [0, -1, 1, 1_790_000_000_000, Number.MAX_SAFE_INTEGER]) {
    for (const seq of [0, 1, 62, 63, 4096, Number.MAX_SAFE_INTEGER]) {
      const token = encodePageToken({ atMs, seq });
      expect(token).toMatch(/^[\w-]+$/);
      expect(decodePageToken(token)).toEqual({ atMs, seq });
    }
  }
});
