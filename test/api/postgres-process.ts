import { type ChildProcess, spawn } from "node:child_process";
import { hash } from "node:crypto";
import { once } from "node:events";
import { expect, onTestFinished } from "vitest";
import { newToken } from "../../api/http/auth/tokens.ts";
import { openPostgres } from "../../db/postgres/open.ts";
import type { Store } from "../../db/store.ts";
import { LAUNCHER } from "../cli/run.ts";
import { exampleSnapshot } from "../contract/api-subject.ts";
import { value } from "../contract/store-rows.ts";
import { PASSWORD } from "../kit/postgres.ts";

/** A token that the API knows without reading its history. */
const TOKEN = newToken().text;
export const HEADERS = { "content-type": "application/json", authorization: `Bearer ${TOKEN}`, connection: "close" };

export interface Process {
  readonly url: string;
  readonly child: ChildProcess;
  /** The log lines so far. */
  readonly log: () => string;
}
/**
 * Starts `nodewise api` with a database, in a process that ends with the test. `ready`: the API serves, or the process
 * has exited.
 */
export function begin(database: string): Omit<Process, "url"> & { readonly ready: Promise<Process> } {
  const args = [LAUNCHER, "api", "--port", "0", "--database", database];
  const env = { ...process.env, PGPASSWORD: PASSWORD, NODEWISE_TOKEN_SHA256: hash("sha256", TOKEN, "hex") };
  const child = spawn(process.execPath, args, { stdio: ["ignore", "pipe", "pipe"], env });
  let text = "";
  child.stderr?.on("data", (chunk) => {
    text += chunk;
  });
  const ended = once(child, "exit");
  onTestFinished(async () => {
    child.kill("SIGTERM");
    await ended;
  });
  const log = (): string => text;
  const ready = Promise.race([once(child.stdout as NodeJS.ReadableStream, "data"), ended]).then(
    ([line]: readonly unknown[]) => ({ url: String(line).trim().split("\n")[0] ?? "", child, log }),
  );
  return { child, log, ready };
}
export const serve = (database: string): Promise<Process> => begin(database).ready;

export async function openedFor(url: string): Promise<Store> {
  const store = value(await openPostgres({ url, password: PASSWORD }));
  onTestFinished(() => store.close());
  return store;
}

export interface Load {
  readonly acknowledged: readonly string[];
  readonly unrecorded: () => number;
  /** Waits until as many more decisions were acknowledged, or answered without a record. */
  readonly more: (acknowledged: number, unrecorded?: number) => Promise<void>;
  /**
   * Stops the requests, and checks two invariants: each answer was a decision, and every acknowledged decision is whole
   * in the history.
   */
  readonly end: (store: Store) => Promise<void>;
}
/** Requests different decisions, with `lanes` requests at a time. */
export function load(url: string, lanes = 8): Load {
  const acknowledged: string[] = [];
  const statuses = new Set<number>();
  let unrecorded = 0;
  let sequence = 0;
  let isGoing = true;
  const lane = async (n: number): Promise<void> => {
    while (isGoing) {
      const kubeletConfiguration = { podPidsLimit: 1000 + sequence };
      const snapshot = exampleSnapshot(`n${n}`, { sequence: sequence++, kubeletConfiguration });
      const body = JSON.stringify({ snapshot });
      const response = await fetch(`${url}/v1/decisions/cgroups`, { method: "POST", headers: HEADERS, body });
      statuses.add(response.status);
      const answer = (await response.json()) as { id: string; recorded: boolean; notRecorded?: string };
      if (answer.recorded) acknowledged.push(answer.id);
      else {
        expect(answer.notRecorded).toBe("history-failed");
        unrecorded++;
      }
    }
  };
  const going = Array.from({ length: lanes }, (_, n) => lane(n));
  return {
    acknowledged,
    unrecorded: () => unrecorded,
    more: async (more, without = 0) => {
      const [most, mostWithout] = [acknowledged.length + more, unrecorded + without];
      const patience = { timeout: 60_000, interval: 20 };
      await expect.poll(() => acknowledged.length, patience).toBeGreaterThanOrEqual(most);
      await expect.poll(() => unrecorded, patience).toBeGreaterThanOrEqual(mostWithout);
    },
    end: async (store) => {
      isGoing = false;
      await Promise.all(going);
      expect([...statuses]).toEqual([200]);
      for (const id of acknowledged) {
        const row = value(await store.getDecision(id));
        expect(row, id).not.toBeNull();
        expect(value(await store.getSnapshot(row?.snapshotId ?? "")), id).not.toBeNull();
      }
      await expect.poll(async () => (await fetch(`${url}/readyz`)).status).toBe(200);
    },
  };
}
