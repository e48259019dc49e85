import { readFileSync } from "node:fs";
import { gunzipSync } from "node:zlib";
import { expect, test } from "vitest";
import { hostAndPort, parseUrl, requestUri, resolveReference, urlText } from "../../../api/decide/go/url.ts";

interface Case {
  /** A URL, and a reference on its page. */
  readonly urls: readonly [string, string];
  /** The results of Go 1.26's net/url. */
  readonly go: Readonly<Record<string, string>>;
}
const CASES = gunzipSync(readFileSync(new URL("../../data/probes/urls.jsonl.gz", import.meta.url)))
  .toString()
  .trimEnd()
  .split("\n")
  .map((line) => JSON.parse(line) as Case);

function ours([text, reference]: Case["urls"]): Readonly<Record<string, string>> {
  const url = parseUrl(text);
  if (!url.ok) return { error: url.error };
  const { hostname, port } = hostAndPort(url.value);
  const parts = { text: urlText(url.value), uri: requestUri(url.value), host: hostname, port };
  const other = parseUrl(reference);
  return other.ok
    ? { ...parts, resolved: urlText(resolveReference(url.value, other.value)) }
    : { ...parts, refError: other.error };
}

test("URLs are parsed, written and resolved as by Go's net/url", () => {
  expect(CASES.length).toBe(600);
  expect(CASES.filter(({ go }) => go["resolved"] !== undefined).length).toBeGreaterThan(100);
  for (const { urls, go } of CASES) expect(ours(urls), JSON.stringify(urls)).toEqual(go);
});
test("an address in brackets has to be IPv6", () => {
  const ipv6 = ["::", "::1", "1::", "fe80::1%25eth0", "1:2:3:4:5:6:7:8", "::ffff:10.0.0.1", "1:2:3:4:5:6:1.2.3.4"];
  for (const address of ipv6) expect(parseUrl(`http://[${address}]:80/`).ok, address).toBe(true);
  const others = [
    "",
    "1",
    "1:2",
    ":::",
    "1::2::3",
    "1:2:3:4:5:6:7:8:9",
    "12345::",
    "10.0.0.1",
    "::1.2.3",
    "g::",
    "::1:",
  ];
  for (const address of others) expect(parseUrl(`http://[${address}]:80/`).ok, address).toBe(false);
});
