import { expect, test } from "vitest";
import { faultOf } from "./contract.ts";
import { findingText, fuzz } from "./fuzz.ts";

/** The same seed at every run in CI; `npm run fuzz` draws a new one each time. */
const SEED = 20_261_123;
const SECONDS = 60;

test(`requests mutated for ${SECONDS} s from seed ${SEED} cause no 500, no crash and no undocumented answer`, {
  timeout: 300_000,
}, async () => {
  const { findings, requests, statuses } = await fuzz({ seed: SEED, seconds: SECONDS });
  expect(findings.map((finding) => findingText(SEED, finding))).toEqual([]);
  expect(requests).toBeGreaterThan(50);
  expect(Object.keys(statuses)).toEqual(expect.arrayContaining(["200", "400", "422"]));
});

const HEADERS = { "x-content-type-options": "nosniff", "cross-origin-resource-policy": "same-origin" };
const JSON_HEADERS = { ...HEADERS, "content-type": "application/json; charset=utf-8" };
test.each([
  ["a fault of the server", { status: 500, headers: JSON_HEADERS, text: "{}" }, /^status 500/],
  [
    "a status that is not described",
    { status: 202, headers: JSON_HEADERS, text: "{}" },
    /202, which its contract lacks/,
  ],
  [
    "another type",
    { status: 200, headers: { ...HEADERS, "content-type": "text/html" }, text: "" },
    /its contract says application\/json/,
  ],
  ["another shape", { status: 200, headers: JSON_HEADERS, text: '{"nodes":[{}]}' }, /not as its schema: nodes\.0/],
  ["no JSON", { status: 200, headers: JSON_HEADERS, text: "{" }, /no JSON/],
  ["a header that is missing", { status: 200, headers: {}, text: '{"nodes":[]}' }, /^x-content-type-options/],
])("the fuzzer would report %s", (_, answer, fault) => {
  expect(faultOf({ method: "GET", target: "/v1/nodes?a=b" }, answer)).toMatch(fault);
  expect(
    faultOf(
      { method: "GET", target: "/v1/nodes" },
      {
        status: 200,
        headers: JSON_HEADERS,
        text: '{"nodes":[],"nextPageToken":null,"countedSince":"2026-01-31T12:00:00Z"}',
      },
    ),
  ).toBeNull();
});
