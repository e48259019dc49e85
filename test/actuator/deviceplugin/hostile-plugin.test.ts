import { createServer, type Server, type Socket } from "node:net";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, onTestFinished, test } from "vitest";
import { serviceOf } from "../../../actuator/deviceplugin/plugin-client.ts";
import { data, frame, framesIn, PREFACE, plain, SETTINGS } from "../grpc/http2.ts";
import { type HostFixture, hostFixture, QUICK } from "./host-kit.ts";
import { healthy, register, until } from "./node-plugin.ts";

const BAD = "example.com/bad";
const GOOD = "example.com/good";

/** Listens at the socket of a plugin without speaking gRPC. */
async function listen(dir: string, onSocket: (socket: Socket) => void): Promise<Server> {
  const server = createServer((socket) => {
    socket.on("error", () => undefined);
    onSocket(socket);
  });
  const sockets = new Set<Socket>();
  server.on("connection", (socket) => sockets.add(socket));
  await new Promise<void>((resolve) => server.listen(join(dir, "bad.sock"), resolve));
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  return server;
}
const registerBad = ({ dir }: HostFixture): Promise<void> =>
  register(join(dir, "kubelet.sock"), { version: "v1beta1", endpoint: "bad.sock", resourceName: BAD });

async function withGood(): Promise<HostFixture> {
  const all = await hostFixture({ timeouts: { dialMs: QUICK.dialMs, optionsMs: QUICK.optionsMs } });
  await all.plugin({ resource: GOOD, devices: healthy("x") }).start();
  await until(all.host.devices, (d) => d.length === 1);
  return all;
}
async function goodGoesOn({ host, faults }: HostFixture): Promise<void> {
  expect(await host.allocate(GOOD, ["x"])).toMatchObject({ ok: true });
  expect(host.amounts().get(GOOD)).toEqual({ capacity: 1, allocatable: 1 });
  expect(faults.filter(({ resource }) => resource === GOOD)).toEqual([]);
}

/** Response headers with HTTP 200 and application/grpc, and the trailers of a successful call. */
const HEAD = Buffer.concat([Buffer.from([0x88, 0x5f]), plain("application/grpc")]);
const END = Buffer.concat([Buffer.from([0x40]), plain("grpc-status"), plain("0")]);
const options = serviceOf("v1beta1.DevicePlugin")["GetDevicePluginOptions"]?.responseSerialize({}) ?? Buffer.alloc(0);
const list =
  serviceOf("v1beta1.DevicePlugin")["ListAndWatch"]?.responseSerialize({ devices: healthy("a", "b") }) ??
  Buffer.alloc(0);
const message = (stream: number, bytes: Buffer): Buffer => {
  const whole = data(stream, bytes);
  whole[4] = 0;
  return whole;
};
/** The frames of a working plugin: those sent immediately, those for its options, and those for its list. */
const SCRIPT: readonly Buffer[] = [
  Buffer.concat([SETTINGS, frame(4, 1, 0, Buffer.alloc(0))]),
  Buffer.concat([frame(1, 4, 1, HEAD), message(1, options), frame(1, 5, 1, END)]),
  Buffer.concat([frame(1, 4, 3, HEAD), message(3, list), message(3, list)]),
];
/** How many frames of the script the client has requested so far. */
function askedBy(received: Buffer): number {
  const streams = framesIn(received.subarray(PREFACE.length)).flatMap(({ type, stream }) =>
    type === 1 ? [stream] : [],
  );
  return received.length === 0 ? 0 : 1 + (streams.includes(1) ? 1 : 0) + (streams.includes(3) ? 1 : 0);
}

describe("a plugin that is no gRPC server", () => {
  test.each([
    ["closes at once", (socket: Socket) => socket.destroy(), "failed to dial device plugin: "],
    ["says nothing", () => undefined, "DEADLINE"],
    ["speaks HTTP/1", (socket: Socket) => socket.end("HTTP/1.1 200 OK\r\n\r\n"), ""],
    ["sends noise without end", (socket: Socket) => flood(socket), ""],
  ])("and %s is not registered, while a good one goes on", async (_name, behave, message) => {
    const all = await withGood();
    await listen(all.dir, behave);
    const fault = await registerBad(all).then(
      () => undefined,
      (error: Error & { details: string }) => error.details,
    );
    expect(fault?.toUpperCase()).toContain(message.toUpperCase());
    expect(all.faults[0]).toMatchObject({ resource: BAD, call: "Register" });
    await goodGoesOn(all);
  });

  test("or changes valid messages at random harms its own resource only", async () => {
    const all = await withGood();
    let seed = 20_261_122;
    const next = (below: number): number => {
      seed = (seed * 48271) % 2147483647;
      return seed % below;
    };
    let changes = 0;
    await listen(all.dir, (socket) => {
      const parts = SCRIPT.map((part) => Buffer.from(part));
      for (let k = 0; k < changes; k++) {
        const part = parts[next(parts.length)] as Buffer;
        part[next(part.length)] = next(256);
      }
      let received = Buffer.alloc(0);
      let said = 0;
      socket.on("data", (chunk) => {
        received = Buffer.concat([received, chunk]);
        for (; said < askedBy(received); said++) socket.write(parts[said] as Buffer);
      });
      setTimeout(() => socket.end(), 100);
    });
    const seen = { registered: 0, refused: 0 };
    for (let i = 0; i < 150; i++) {
      changes = i % 5;
      await registerBad(all).then(
        () => seen.registered++,
        () => seen.refused++,
      );
      for (const { id } of all.host.devices()) expect(id.length).toBeGreaterThan(0);
    }
    await sleep(300);
    expect(seen.registered).toBeGreaterThan(30);
    expect(seen.refused).toBeGreaterThan(10);
    await goodGoesOn(all);
  }, 120_000);
});

function flood(socket: Socket): void {
  const noise = Buffer.alloc(65_536, 0x5a);
  const more = (): void => {
    while (!socket.destroyed && socket.write(noise));
  };
  socket.on("drain", more);
  more();
}
