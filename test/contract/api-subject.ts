import { expect } from "vitest";
import type * as z from "zod";
import type { Scope } from "../../api/dependencies.ts";
import { SNAPSHOT } from "../../api/documents/kind-examples.ts";
import { createToken } from "../../api/http/auth/tokens.ts";
import { problemAnswer } from "../../api/http/openapi/decision-answers.ts";
import { PROBLEMS } from "../../api/http/problem.ts";
import type { ProblemCode } from "../../api/service/problem.ts";
import type { Store } from "../../db/store.ts";
import { value } from "./store-rows.ts";

/** An API under test, initially empty, whose history a test may read. */
export interface ApiSubject {
  /** `path` begins with a slash; a token, if any, must be in the headers. */
  fetch(path: string, init?: RequestInit): Promise<Response>;
  readonly store: Store;
  readonly dispose: () => Promise<void>;
}
export type Of = () => ApiSubject;

let counter = 0;
export const fresh = (prefix: string): string => `${prefix}-${++counter}`;

/** The snapshot of the OpenAPI document's example, for another node name. */
export const exampleSnapshot = (
  name: string,
  over: Readonly<Record<string, unknown>> = {},
): Record<string, unknown> => ({
  ...SNAPSHOT,
  node: { ...SNAPSHOT.node, metadata: { name } },
  ...over,
});

/** A machine of two NUMA nodes of four cores, two threads each. */
export const TWO_NUMA_NODES = {
  cpus: Array.from({ length: 16 }, (_, cpu) => ({ cpu, core: cpu % 8, socket: 0, numa: Math.floor((cpu % 8) / 4) })),
  numaNodes: [
    { id: 0, memoryBytes: 2 ** 34 },
    { id: 1, memoryBytes: 2 ** 34 },
  ],
};

export async function tokenFor(store: Store, scopes: readonly Scope[], node: string | null = null): Promise<string> {
  return value(await createToken(store, { name: "test", scopes, node, now: Date.now() })).token;
}

const admins = new WeakMap<Store, Promise<string>>();
/** The headers of a caller with all permissions. */
export async function admin({ store }: ApiSubject): Promise<Record<string, string>> {
  let token = admins.get(store);
  if (token === undefined) {
    token = tokenFor(store, ["admin"]);
    admins.set(store, token);
  }
  return { authorization: `Bearer ${await token}` };
}

export async function post(
  api: ApiSubject,
  path: string,
  body: unknown,
  headers: Readonly<Record<string, string>> = {},
): Promise<Response> {
  return send(api, "POST", path, body, headers);
}
export async function send(
  api: ApiSubject,
  method: string,
  path: string,
  body: unknown,
  headers: Readonly<Record<string, string>> = {},
): Promise<Response> {
  const text = typeof body === "string" || body instanceof Uint8Array ? body : JSON.stringify(body);
  const all = { "content-type": "application/json", ...(await admin(api)), ...headers };
  return api.fetch(path, { method, headers: all, body: text as string });
}
export async function get(
  api: ApiSubject,
  path: string,
  headers: Readonly<Record<string, string>> = {},
): Promise<Response> {
  return api.fetch(path, { headers: { ...(await admin(api)), ...headers } });
}

/** The response's body, parsed with its schema of the OpenAPI document. */
export async function answer<S extends z.ZodType>(response: Response, schema: S, status = 200): Promise<z.output<S>> {
  const text = await response.text();
  expect(response.status, text).toBe(status);
  expect(response.headers.get("content-type")).toMatch(/^application\/json/);
  return schema.parse(JSON.parse(text));
}

/**
 * Repeats a request for a first page that ended early because of its time limit: on a busy machine two decisions may
 * take longer than the second that a page may take.
 */
export async function untilWhole<P>(ask: () => Promise<P>, isWhole: (page: P) => boolean): Promise<P> {
  let page = await ask();
  for (let i = 0; i < 20 && !isWhole(page); i++) page = await ask();
  return page;
}

/** A problem document with this code, checked for everything that callers rely on. */
export async function problemOf(response: Response, code: ProblemCode): Promise<z.output<typeof problemAnswer>> {
  const text = await response.text();
  expect(response.headers.get("content-type"), text).toBe("application/problem+json");
  const problem = problemAnswer.parse(JSON.parse(text));
  expect(problem.code, text).toBe(code);
  expect(response.status).toBe(PROBLEMS[code].status);
  expect(problem.status).toBe(response.status);
  expect(problem.type).toBe(`/docs#${code}`);
  expect(problem.detail).not.toBe("");
  expect(problem.advice).not.toBe("");
  expect(problem.requestId).toBe(response.headers.get("x-request-id"));
  return problem;
}
