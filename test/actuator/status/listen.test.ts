import { expect, test } from "vitest";
import { isOwnHost, parseListen } from "../../../actuator/core/addresses.ts";

test.each([
  ["off", null],
  ["127.0.0.1:10260", { host: "127.0.0.1", port: 10260 }],
  ["localhost:1", { host: "127.0.0.1", port: 1 }],
  ["0", { host: "127.0.0.1", port: 0 }],
  ["8080", { host: "127.0.0.1", port: 8080 }],
  ["[::1]:80", { host: "::1", port: 80 }],
  ["0.0.0.0:10260", { host: "0.0.0.0", port: 10260 }],
])("parseListen accepts %s", (text, address) => {
  expect(parseListen(text)).toEqual({ ok: true, value: address });
});

test.each([
  [":10260", /^name the address: 127\.0\.0\.1:10260, or 0\.0\.0\.0:10260 for every address/],
  ["127.0.0.1:65536", /^65536 is no port/],
  ["127.0.0.1", /^expected ADDRESS:PORT such as 127\.0\.0\.1:10260, or off$/],
  ["node.example:80", /^`node\.example` is no address/],
  ["::1:80", /^expected ADDRESS:PORT/],
  ["[127.0.0.1]:80", /is no address/],
  ["", /^expected/],
  ["OFF", /^expected/],
])("parseListen refuses %j", (text, message) => {
  const parsed = parseListen(text);
  expect(parsed.ok).toBe(false);
  expect(!parsed.ok && parsed.error).toMatch(message);
});

test("a Host header names this machine by an address, localhost, or the node's name", () => {
  const isOwn = (header: string): boolean => isOwnHost(header, ["N1", "n1.example"]);
  for (const own of ["127.0.0.1:10260", "localhost", "LOCALHOST:1", "[::1]:10260", "10.1.2.3", "n1:80", "n1.example."])
    expect(isOwn(own), own).toBe(true);
  for (const foreign of [
    "",
    "evil.example",
    "evil.example:10260",
    "127.0.0.1.evil.example",
    "n1.evil",
    "[evil]",
    "a:b:c",
  ])
    expect(isOwn(foreign), foreign).toBe(false);
});
