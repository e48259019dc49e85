import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { expect, onTestFinished, test } from "vitest";
import { isReady, postJson } from "../../actuator/client/api-access.ts";

setFlagsFromString("--expose-gc");
const collect = runInNewContext("gc") as () => void;

test("a request to a hanging API times out even if garbage is collected meanwhile", async () => {
  const server = createServer(() => {}).listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const access = { url, token: undefined, timeoutMs: 1000, fetch };
  const collecting = setInterval(collect, 100);
  onTestFinished(() => clearInterval(collecting));
  const [posted, ready] = await Promise.all([postJson(access, "/x", {}), isReady(access)]);
  expect(posted).toMatchObject({ ok: false, error: { isSlow: true } });
  expect(ready).toBe(false);
});
