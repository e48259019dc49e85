import { type ChildProcess, spawn } from "node:child_process";
import { hash } from "node:crypto";
import { once } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import { expect, onTestFinished, test, vi } from "vitest";
import { newToken } from "../../api/http/auth/tokens.ts";
import { LAUNCHER } from "../cli/run.ts";
import { exampleSnapshot } from "../contract/api-subject.ts";
import { noPostgres, PASSWORD, PostgresServer } from "../kit/postgres.ts";
import { receiver } from "./decision-log-receiver.ts";
import { dataDirectory } from "./serving.ts";

const TOKEN = newToken().text;
const HEADERS = { "content-type": "application/json", authorization: `Bearer ${TOKEN}`, connection: "close" };

interface Api {
  readonly url: string;
  readonly child: ChildProcess;
}
async function started(...args: readonly string[]): Promise<Api> {
  const env = { ...process.env, PGPASSWORD: PASSWORD, NODEWISE_TOKEN_SHA256: hash("sha256", TOKEN, "hex") };
  const child = spawn(process.execPath, [LAUNCHER, "api", "--port", "0", ...args], {
    stdio: ["ignore", "pipe", "ignore"],
    env,
  });
  const ended = once(child, "exit");
  onTestFinished(async () => {
    child.kill("SIGKILL");
    await ended;
  });
  const [line] = (await Promise.race([once(child.stdout as NodeJS.ReadableStream, "data"), ended])) as [Buffer];
  return { url: line.toString().trim(), child };
}

let sequence = 0;
/** Requests different decisions until `isOver`; returns the ids of those that were acknowledged as recorded. */
async function load(apis: readonly Api[], acknowledged: string[], isOver: () => boolean): Promise<void> {
  const lane = async (lane: number): Promise<void> => {
    while (!isOver()) {
      const kubeletConfiguration = { podPidsLimit: 1000 + sequence };
      const snapshot = exampleSnapshot(`n${lane}`, { sequence: sequence++, kubeletConfiguration });
      const { url } = apis[lane % apis.length] as Api;
      const answer = await fetch(`${url}/v1/decisions/cgroups`, {
        method: "POST",
        headers: HEADERS,
        body: JSON.stringify({ snapshot }),
      })
        .then((response) => response.json() as Promise<{ id: string; recorded: boolean }>)
        .catch(() => null);
      if (answer === null) await sleep(20);
      else if (answer.recorded) acknowledged.push(answer.id);
    }
  };
  await Promise.all(Array.from({ length: 8 }, (_, n) => lane(n)));
}
const until = (check: () => void) => vi.waitFor(check, { timeout: 90_000, interval: 100 });

test("an API killed under load delivers every acknowledged decision to the decision log at least once", {
  timeout: 240_000,
}, async () => {
  const { url, taken } = await receiver([[200], [500], [200, {}, 300]]);
  const args = ["--data-dir", dataDirectory(), "--decision-log", `${url}`];
  const acknowledged: string[] = [];
  for (let kills = 0; kills < 3; kills++) {
    const api = await started(...args);
    let going = true;
    const asked = load([api], acknowledged, () => !going);
    const before = acknowledged.length;
    while (acknowledged.length < before + 100) await sleep(5);
    api.child.kill("SIGKILL");
    going = false;
    await asked;
  }
  // no further decision is requested
  await started(...args);
  const missing = () => {
    const ids = new Set(taken.map((one) => one.decision_id));
    return acknowledged.filter((id) => !ids.has(id));
  };
  await until(() => expect(missing()).toEqual([]));
  expect(acknowledged.length).toBeGreaterThanOrEqual(300);
});

if (noPostgres !== null) test.skip(`API processes over one Postgres: ${noPostgres}`, () => {});
else
  test("of several API processes over one Postgres one delivers the decision log, and another takes over", {
    timeout: 240_000,
  }, async () => {
    const server = await PostgresServer.start();
    onTestFinished(() => server.dispose());
    await server.database("history");
    const { url, posts, taken } = await receiver();
    const args = ["--database", server.url("history"), "--decision-log", `${url}`];
    const apis = [await started(...args), await started(...args), await started(...args)];
    const acknowledged: string[] = [];
    let going = true;
    const asked = load(apis, acknowledged, () => !going);
    await until(() => expect(taken.length).toBeGreaterThan(200));
    going = false;
    await asked;
    const ids = () => taken.map((one) => one.decision_id);
    await until(() => expect(new Set(ids())).toEqual(new Set(acknowledged)));
    // without faults no event is delivered twice
    expect(ids()).toHaveLength(acknowledged.length);
    const deliverers = () => [...new Set(taken.map(({ labels }) => labels["id"]))];
    expect(deliverers()).toHaveLength(1);

    // the process that delivers is killed during its delivery; the others answer meanwhile
    const lag = await Promise.all(
      apis.map(async (api) =>
        /^nodewise_decision_log_waiting \d/m.test(
          await (await fetch(`${api.url}/metrics`, { headers: HEADERS })).text(),
        ),
      ),
    );
    expect(lag.filter(Boolean)).toHaveLength(1);
    const killed = apis[lag.indexOf(true)] as Api;
    const others = apis.filter((api) => api !== killed);
    going = true;
    const more = load(apis, acknowledged, () => !going);
    const sent = posts.length;
    await until(() => expect(posts.length).toBeGreaterThan(sent));
    killed.child.kill("SIGKILL");
    await sleep(1_000);
    going = false;
    await more;
    await until(() => expect(acknowledged.filter((id) => !ids().includes(id))).toEqual([]));
    expect(deliverers()).toHaveLength(2);
    expect(others).toHaveLength(2);
  });
