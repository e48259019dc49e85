import { readdirSync, readFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { ApiClient, redactAsk, redactSnapshot } from "../../actuator/client/client.ts";
import { decideLocally } from "../../actuator/client/local-client.ts";
import { Outbox } from "../../actuator/client/outbox.ts";
import { FactsStore } from "../../actuator/core/facts-file.ts";
import { decodeSnapshot } from "../../api/model/decode.ts";
import { decodeAsk } from "../../api/model/decode-ask.ts";
import { answered, snapshot } from "./answered.ts";
import { scratch } from "./manifests/scratch.ts";

const SECRET = "hunter2secret";
const secretive = {
  image: "i",
  command: ["sh", "-c", SECRET],
  args: [SECRET],
  env: [{ name: "PASSWORD", value: SECRET }],
  lifecycle: { preStop: { exec: { command: [SECRET] } } },
  volumeMounts: [{ name: "v", mountPath: `/${SECRET}` }],
};
const secretivePod = (name: string, resources: object, more: object = {}) => ({
  apiVersion: "v1",
  kind: "Pod",
  metadata: { name, namespace: "a", uid: `u-${name}`, annotations: { note: SECRET }, labels: { note: SECRET } },
  spec: { containers: [{ name: "c", resources, ...secretive }], initContainers: [{ name: "i", ...secretive }] },
  status: {
    phase: "Running",
    containerStatuses: [{ name: "c", state: { terminated: { exitCode: 1, message: SECRET } } }],
  },
  ...more,
});
const pod = secretivePod("keeps", { requests: { cpu: "10m" } });
const whole = {
  ...snapshot,
  kubeletConfiguration: { ...snapshot.kubeletConfiguration, staticPodURLHeader: { Authorization: [SECRET] } },
  pods: [...(snapshot.pods.items ?? snapshot.pods), pod],
};
const ask = { pod: secretivePod("asks", { requests: { cpu: "20m" } }) };

/** A policy API that records the requests' bodies. */
async function listening(status: number) {
  const bodies: string[] = [];
  const server = createServer(async (request, response) => {
    let body = "";
    for await (const chunk of request) body += chunk;
    if (body !== "") bodies.push(body);
    const kind = request.url?.endsWith("admission") ? "admission" : "cgroups";
    response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(answered(kind)));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return { bodies, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` };
}

test.each([200, 500])("an API that answers %d is sent no pod value that no decision reads", async (status) => {
  const { bodies, url } = await listening(status);
  const dir = scratch({});
  const outbox = Outbox.open(join(dir, "outbox.jsonl"));
  const access = { url, token: undefined, timeoutMs: 20_000, fetch };
  const client = new ApiClient(access, outbox, new FactsStore(dir, () => {}), () => {});
  for (const kind of ["allocatable", "cgroups"] as const) {
    const answer = await client.decide(kind, whole);
    if (answer.ok) await client.commit(answer.value);
  }
  const answer = await client.decide("admission", whole, ask);
  if (answer.ok) await client.commit(answer.value);
  expect(bodies.length).toBeGreaterThanOrEqual(status === 200 ? 3 : 1);
  const files = readdirSync(dir).map((name) => readFileSync(join(dir, name), "utf8"));
  const kept = [...bodies, ...files];
  const holding = (text: string): number => kept.filter((one) => one.includes(text)).length;
  expect([holding("u-keeps") > 0, holding("u-asks") > 0, holding(SECRET)]).toEqual([true, true, 0]);
});

test("a redacted snapshot is stored under the same id and decides the same as the whole one", () => {
  const [reported, redactedAsk] = [
    JSON.parse(JSON.stringify(redactSnapshot(whole))),
    JSON.parse(JSON.stringify(redactAsk(ask))),
  ];
  const stored = (value: unknown) => {
    const decoded = decodeSnapshot(value);
    return decoded.ok ? JSON.stringify(decoded.value) : decoded.error;
  };
  expect(stored(reported)).toBe(stored(whole));
  const asked = (value: unknown) => JSON.stringify(decodeAsk("admission", value));
  expect(asked(redactedAsk)).toBe(asked(ask));
  expect(decideLocally("admission", reported, { ask: redactedAsk })).toEqual(
    decideLocally("admission", whole, { ask }),
  );
});

test("an invalid pod keeps its fault in a redacted snapshot, and nothing else", () => {
  const faulty = secretivePod("bad", { limits: { memory: "1Qi" } });
  const reported = JSON.parse(JSON.stringify(redactSnapshot({ pods: [faulty] })));
  expect(JSON.stringify(reported)).not.toContain(SECRET);
  expect(decodeSnapshot(reported)).toEqual(decodeSnapshot({ pods: [faulty] }));
});
