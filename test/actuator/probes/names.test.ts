import { rmSync, utimesSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { HostResolver, parseHosts, parseResolvConf } from "../../../actuator/probes/dns/host-resolver.ts";
import { scratchFolder } from "../../kit/scratch.ts";
import { NameServer, NXDOMAIN, SERVFAIL } from "./name-server.ts";

const dir = scratchFolder();
const [hosts, resolvConf] = [join(dir, "hosts"), join(dir, "resolv.conf")];
const server = new NameServer(() => NXDOMAIN);
beforeAll(() => server.listen());
afterAll(() => server.close());
const CONF = "nameserver 127.0.0.1\noptions timeout:9 attempts:2\n";
/** A resolver as in a daemon that has just started. */
function namesOf(conf = CONF, hostsText = ""): HostResolver {
  writeFileSync(hosts, hostsText);
  writeFileSync(resolvConf, conf);
  return new HostResolver({ hosts, resolvConf, port: server.port });
}
const on = (words: string): string => `on 127.0.0.1:${server.port}: ${words}`;

test("addresses and names in the hosts file resolve at once while all name servers are silent", async () => {
  server.says = () => undefined;
  const names = namesOf(CONF, "10.0.0.1 A.example a # b\n10.0.0.2\ta.example\nno.address c\nfe80::1%lo d\n");
  const silent = Array.from({ length: 50 }, (_, i) => names.addressesOf(`silent${i}.example`));
  expect(silent.every((one) => one instanceof Promise)).toBe(true);
  expect(names.addressesOf("a.EXAMPLE.")).toEqual({ ok: true, value: ["10.0.0.1", "10.0.0.2"] });
  expect(names.addressesOf("d")).toEqual({ ok: true, value: ["fe80::1%lo"] });
  expect(names.addressesOf("::1")).toEqual({ ok: true, value: ["::1"] });
  expect(names.addressesOf("c")).toBeInstanceOf(Promise);
  const localhost = names.addressesOf("localhost");
  expect("ok" in localhost && localhost.ok && localhost.value.includes("127.0.0.1")).toBe(true);
  // lookups of other names do not wait either
  server.says = (name) => (name.startsWith("silent") ? undefined : ["10.0.0.9"]);
  expect(await names.addressesOf("spoken.example")).toEqual({ ok: true, value: ["10.0.0.9"] });
});

test("concurrent lookups of a name share one query, and a later lookup asks again", async () => {
  const held = Promise.withResolvers<readonly string[]>();
  server.says = () => held.promise;
  const names = namesOf();
  const [first, second] = [names.addressesOf("once.example"), names.addressesOf("once.example")];
  await vi.waitFor(() => expect(server.asked.get("once.example")).toBeGreaterThan(0), { timeout: 30_000 });
  expect(first).toBe(second);
  held.resolve(["10.0.0.1"]);
  expect(await first).toEqual({ ok: true, value: ["10.0.0.1"] });
  server.says = () => ["10.0.0.2"];
  // regardless of a record's TTL, as in the kubelet
  expect(await names.addressesOf("once.example")).toEqual({ ok: true, value: ["10.0.0.2"] });
});

test("a query is repeated when the name server loses it", async () => {
  let lost = 0;
  server.says = () => (lost++ < 2 ? undefined : ["10.0.0.3"]);
  expect(await namesOf().addressesOf("lost.example")).toEqual({ ok: true, value: ["10.0.0.3"] });
});

test("search domains are tried first for a name with few dots", async () => {
  const order: string[] = [];
  server.says = (name) => {
    if (!order.includes(name)) order.push(name);
    return name === "a.b.example" ? ["10.0.0.4"] : NXDOMAIN;
  };
  const names = namesOf(`${CONF}search x.example b.example\noptions ndots:2\n`);
  expect(await names.addressesOf("a")).toEqual({ ok: true, value: ["10.0.0.4"] });
  expect(order.splice(0)).toEqual(["a.x.example", "a.b.example"]);
  await names.addressesOf("a.b.c");
  expect(order.splice(0)).toEqual(["a.b.c", "a.b.c.x.example", "a.b.c.b.example"]);
  await names.addressesOf("a.");
  expect(order).toEqual(["a"]);
});

test("a failed lookup has Go's words, with the name server's address", async () => {
  server.says = (name) => (name === "broken.example" ? SERVFAIL : name === "empty.example" ? [] : NXDOMAIN);
  const names = namesOf();
  const errorOf = async (host: string) => ({ ...(await names.addressesOf(host)) });
  expect(await errorOf("none.example")).toMatchObject({ error: `lookup none.example ${on("no such host")}` });
  expect(await errorOf("empty.example")).toMatchObject({ error: `lookup empty.example ${on("no such host")}` });
  expect(await errorOf("broken.example")).toMatchObject({ error: `lookup broken.example ${on("server misbehaving")}` });
  const before = server.asked.size;
  for (const host of ["a b", "127.0.0.1.5", "-a", "a..b", "é", "a".repeat(64), ""]) {
    expect(await errorOf(host)).toMatchObject({ error: `lookup ${host}: no such host` });
  }
  expect(server.asked.size).toBe(before);
});

test("a changed hosts file is read again, and a removed one is empty", () => {
  vi.useFakeTimers({ toFake: ["performance"] });
  try {
    const names = namesOf(CONF, "10.0.0.1 a\n");
    expect(names.addressesOf("a")).toEqual({ ok: true, value: ["10.0.0.1"] });
    writeFileSync(hosts, "10.0.0.2 a\n");
    utimesSync(hosts, 1, 1);
    vi.advanceTimersByTime(5001);
    expect(names.addressesOf("a")).toEqual({ ok: true, value: ["10.0.0.2"] });
    rmSync(hosts);
    vi.advanceTimersByTime(5001);
    expect(names.addressesOf("a")).toBeInstanceOf(Promise);
  } finally {
    vi.useRealTimers();
  }
});

test("resolv.conf and hosts are read as in Go", () => {
  const none = parseResolvConf("");
  expect(none).toMatchObject({ servers: ["127.0.0.1", "::1"], ndots: 1, timeoutMs: 5000, attempts: 2 });
  const text = `; nameserver 9.9.9.9\nnameserver 1.1.1.1\nnameserver x\n nameserver\t::2
nameserver 3.3.3.3\nnameserver 4.4.4.4\nsearch a b\ndomain c d\noptions ndots:99 timeout:0 attempts:x rotate`;
  expect(parseResolvConf(text)).toEqual({
    ...{ servers: ["1.1.1.1", "::2", "3.3.3.3"], search: ["c"], ndots: 15, timeoutMs: 1000, attempts: 2 },
  });
  expect([...parseHosts("::1 a b\r\n1.2.3.4 b\n#1.1.1.1 x\n")]).toEqual([
    ["a", ["::1"]],
    ["b", ["::1", "1.2.3.4"]],
  ]);
});
