import { describe, expect, test } from "vitest";
import { serviceOf } from "../../../actuator/deviceplugin/plugin-client.ts";
import { random, sayChanged, sayEndlessHeaders, sayNoise } from "../grpc/hostile.ts";
import { data, frame, framesIn, headers, PREFACE, plain, rawConnection, SETTINGS } from "../grpc/http2.ts";
import { hostFixture } from "./host-kit.ts";
import { healthy, register, until } from "./node-plugin.ts";

const GPU = "example.com/gpu";
const REGISTER = "/v1beta1.Registration/Register";
const HEADERS = 1;
const RST_STREAM = 3;
const GOAWAY = 7;
const message = (request: object): Buffer =>
  serviceOf("v1beta1.Registration")["Register"]?.requestSerialize(request) ?? Buffer.alloc(0);
const request = (stream: number, block: Buffer, endpoint: string): Buffer =>
  Buffer.concat([
    frame(HEADERS, 4, stream, block),
    data(stream, message({ version: "v1beta1", endpoint, resourceName: GPU })),
  ]);

describe("a client with a path as :authority", () => {
  test("registers twice on one connection, the second time by an index of the header table", async () => {
    const { host, plugin } = await hostFixture();
    const gpu = plugin({ resource: GPU, devices: healthy("a") });
    await gpu.serve();
    const raw = await rawConnection(host.socketPath);
    const block = headers(REGISTER, plain(host.socketPath), "indexed name");
    raw.socket.write(Buffer.concat([PREFACE, SETTINGS, request(1, block, "example.com_gpu.sock")]));
    await until(host.devices, (d) => d.length === 1);
    // the first request added these to the HPACK table: te, content-type, :authority, :path
    const again = Buffer.from([0x83, 0x86, 0x80 | 65, 0x80 | 64, 0x80 | 63, 0x80 | 62]);
    raw.socket.write(request(3, again, "example.com_gpu.sock"));
    await until(
      () => host.states()[0]?.generation,
      (generation) => generation === 2,
    );
    const refused = framesIn(raw.received()).filter(({ type }) => type === RST_STREAM || type === GOAWAY);
    expect(refused).toEqual([]);
    raw.socket.destroy();
  });
});

describe("hostile bytes on the registration socket", () => {
  test("that change a valid conversation are answered or end the connection, and the server continues", async () => {
    const { host, plugin, faults } = await hostFixture();
    const good = plugin({ resource: GPU, devices: healthy("a") });
    await good.start();
    await until(host.devices, (d) => d.length === 1);
    const next = random(20_261_122);
    const whole = Buffer.concat([
      PREFACE,
      SETTINGS,
      request(1, headers(REGISTER, plain(host.socketPath), "indexed name"), "../x"),
      request(3, headers(REGISTER, plain("/x"), "Huffman name"), "nobody"),
    ]);
    const seen = await sayChanged(host.socketPath, whole, 400, next);
    expect(seen.answered).toBeGreaterThan(20);
    expect(seen.closed).toBeGreaterThan(20);
    await good.register();
    expect(host.amounts().get(GPU)?.allocatable).toBe(1);
    // no fault of the working plugin beside it was reported
    expect(faults.filter(({ call }) => call === "ListAndWatch")).toEqual([]);
  }, 120_000);

  test("of noise, HTTP/1 or silence do no harm", async () => {
    const { host, plugin, faults } = await hostFixture();
    await sayNoise(host.socketPath, 50, random(7));
    const old = await rawConnection(host.socketPath);
    old.socket.write("GET / HTTP/1.1\r\n\r\n");
    await old.closed;
    const silent = await rawConnection(host.socketPath);
    expect(faults.length).toBe(51);
    expect(faults[50]).toMatchObject({ call: "Register", code: "REFUSED", message: "it does not speak HTTP/2" });
    await plugin({ resource: GPU, devices: healthy("a") }).start();
    silent.socket.destroy();
  });

  test("of endless headers do not grow the memory", async () => {
    const { host, plugin } = await hostFixture();
    expect(await sayEndlessHeaders(host.socketPath)).toBeLessThan(250 * 1024 * 1024);
    await plugin({ resource: GPU, devices: healthy("a") }).start();
  });

  test("of an oversized request are refused, and the server continues", async () => {
    const { host, dir } = await hostFixture();
    const endpoint = "x".repeat(100_000);
    await expect(
      register(`${dir}/kubelet.sock`, { version: "v1beta1", endpoint, resourceName: GPU }),
    ).rejects.toMatchObject({
      code: 8,
    });
    expect(host.states()).toEqual([]);
  });
});
