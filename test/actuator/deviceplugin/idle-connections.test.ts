import { connect, type Socket } from "node:net";
import { expect, onTestFinished, test } from "vitest";
import { rawConnection } from "../grpc/http2.ts";
import { hostFixture } from "./host-kit.ts";
import { healthy, until } from "./node-plugin.ts";

const GPU = "example.com/gpu";

async function idle(path: string, most: number): Promise<readonly Socket[]> {
  const sockets: Socket[] = [];
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy();
  });
  for (let i = 0; i < most; i++) {
    const socket = connect(path)
      .on("error", () => undefined)
      .resume();
    await new Promise<void>((done) => socket.once("connect", done));
    sockets.push(socket);
  }
  return sockets;
}

test("idle connections are closed in favour of plugins that register, with one report", async () => {
  const { host, plugin, faults } = await hostFixture();
  const sockets = await idle(host.socketPath, 300);
  await plugin({ resource: GPU, devices: healthy("a") }).start();
  await until(host.amounts, (amounts) => amounts.get(GPU)?.allocatable === 1);
  expect(faults).toEqual([
    {
      resource: "",
      endpoint: host.socketPath,
      call: "Register",
      code: "TOO_MANY_CONNECTIONS",
      message: "128 connections are open, as many as may be: the most silent was closed",
    },
  ]);
  await until(
    () => sockets.filter(({ closed }) => !closed).length,
    (open) => open <= 128,
  );
  const raw = await rawConnection(host.socketPath);
  raw.socket.destroy();
});

test("a registration that waits for its plugin is not closed in favour of others", { timeout: 60_000 }, async () => {
  const { host, plugin } = await hostFixture({ timeouts: { dialMs: 30_000 } });
  const gpu = plugin({ resource: GPU, devices: healthy("a") });
  let ended: string | undefined;
  const registered = gpu.register().then(
    () => (ended = "registered"),
    (error: Error) => (ended = error.message),
  );
  await idle(host.socketPath, 200);
  expect(ended).toBeUndefined();
  await gpu.serve();
  await registered;
  expect(ended).toBe("registered");
});
