import { describe, expect, test } from "vitest";
import { faultOf } from "../../api/base/json-fault.ts";
import { LIMITS } from "../../api/base/limits.ts";
import { MAX_DEPTH, parseJson } from "../../api/service/json.ts";

const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);
const nested = (levels: number): string => `${'{"a":['.repeat(levels / 2)}1${"]}".repeat(levels / 2)}`;

describe("the position of a JSON error", () => {
  test.each([
    ["", "the body is empty"],
    ["{", "line 1, column 2 (the end): expected a name in quotes or `}`; the text is cut off"],
    ['{"a":1,}', "line 1, column 8: expected a name in quotes, found `}`"],
    ['{"a" 1}', "line 1, column 6: expected `:`, found `1`"],
    ["[1,]", "line 1, column 4: expected a value, found `]`"],
    ["[1\n,\n2 3]", "line 3, column 3: expected `,` or `]`, found `3`"],
    [
      '"a\nb"',
      'line 1, column 3: expected a character or `"` (control characters are written as \\u....), found `\\n`',
    ],
    ['"\\x"', "line 1, column 3: expected an escape such as \\n or \\u0041, found `x`"],
    ['{"a":"b', 'line 1, column 8 (the end): expected `"`; the text is cut off'],
    ['{"a":1 "b":2}', 'line 1, column 8: expected `,` or `}`, found `"`'],
    ["{}{}", "line 1, column 3: expected nothing more, found `{`"],
    ["😀", "line 1, column 1: expected a JSON value, found `😀`"],
  ])("for the text %j", (text, fault) => {
    expect(() => JSON.parse(text)).toThrow();
    expect(faultOf(text)).toBe(fault);
  });

  test("is found for every text that JSON.parse refuses, at or before the parser's position", () => {
    const valid = '{"a\\u00e9\\n":[1,-2.5e+3,true,false,null,{"b":"","c":[[]]}, {} ],"d":0}';
    expect(JSON.parse(valid)).toBeTruthy();
    let refused = 0;
    for (let i = 0; i < valid.length; i++) {
      for (const put of ["", "x", '"', "}", "]", ",", ":", "\\", "\n", "0", "{", "-"]) {
        for (const text of [
          valid.slice(0, i) + put + valid.slice(i),
          valid.slice(0, i) + put + valid.slice(i + 1),
          valid.slice(0, i) + put,
        ]) {
          if (parses(text)) continue;
          refused++;
          const fault = faultOf(text);
          const place = /^line (\d+), column (\d+)/.exec(fault);
          if (text.trim() === "") {
            expect(fault).toBe("the body is empty");
            continue;
          }
          expect(place, `${text} -> ${fault}`).not.toBeNull();
          if (fault.includes("(the end)")) continue;
          // the text before the reported place is the beginning of some JSON; the text up to the end of the word there
          // is not
          const at = offsetOf(text, Number(place?.[1] ?? 1), Number(place?.[2] ?? 1));
          expect(canGoOn(text.slice(0, at)), `${text} -> ${fault}`).toBe(true);
          const word = /^[-+.\w]*/.exec(text.slice(at))?.[0].length ?? 0;
          if (at + word < text.length) expect(canGoOn(text.slice(0, at + word + 1)), `${text} -> ${fault}`).toBe(false);
        }
      }
    }
    expect(refused).toBeGreaterThan(1000);
  });
});

const parses = (text: string): boolean => {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
};
const offsetOf = (text: string, line: number, column: number): number =>
  text
    .split("\n")
    .slice(0, line - 1)
    .reduce((sum, l) => sum + l.length + 1, 0) +
  column -
  1;
/** Whether a text may continue: JSON.parse reports a truncated text at its end, and a wrong text earlier. */
function canGoOn(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch (error) {
    const { message } = error as Error;
    return message.includes("Unexpected end") || message.includes(`at position ${text.length} `);
  }
}

describe("the nesting depth of JSON", () => {
  test.each([MAX_DEPTH, MAX_DEPTH + 2])("of %i levels is limited in small and in large texts", (levels) => {
    const padding = `"${"x".repeat(200_000)}"`;
    for (const text of [nested(levels), `[${padding},${nested(levels - 2)}]`]) {
      const deepest = text.startsWith("[") ? levels - 1 : levels;
      expect(parseJson(bytes(text)).ok, `${text.length} bytes`).toBe(deepest <= MAX_DEPTH);
    }
  });
  test("ignores brackets in strings, and escaped quotes do not end a string", () => {
    const text = JSON.stringify({ a: `${"[{".repeat(100_000)}"\\`, b: [[]] });
    expect(text.length).toBeGreaterThan(128 * 1024);
    expect(parseJson(bytes(text)).ok).toBe(true);
  });
  test("of a large text of brackets is refused without parsing it", () => {
    const refused = parseJson(bytes("[".repeat(8_000_000)));
    expect(refused).toMatchObject({
      ok: false,
      error: { code: "malformed_json", detail: expect.stringContaining("nested deeper than 128") },
    });
  });
});

test("a byte order mark is skipped, and text that is not UTF-8 is refused", () => {
  expect(parseJson(Uint8Array.of(0xef, 0xbb, 0xbf, 0x7b, 0x7d))).toEqual({ ok: true, value: {} });
  for (const wrong of [
    [0x22, 0xc0, 0x80, 0x22],
    [0x22, 0xed, 0xa0, 0x80, 0x22],
    [0xff, 0xfe, 0x7b, 0x00],
  ]) {
    expect(parseJson(Uint8Array.from(wrong))).toMatchObject({ ok: false, error: { detail: "the body is not UTF-8" } });
  }
});

describe("the number of values in a JSON body", () => {
  const many = (item: string, length: number): string => `[${`${item},`.repeat(length)}${item}]`;

  test.each(["[]", "{}", "1", '""'])("is limited: millions of %s are refused before they are parsed", (item) => {
    const text = many(item, Math.floor(8_000_000 / (item.length + 1)));
    expect(parseJson(bytes(text))).toMatchObject({ ok: false, error: { code: "body_too_large" } });
    expect(parseJson(bytes(many(item, 100_000)))).toMatchObject({ ok: true });
  });

  test("does not count commas and brackets within strings", () => {
    const text = JSON.stringify([",[{".repeat(1_000_000), '\\",'.repeat(500_000)]);
    expect(parseJson(bytes(text))).toMatchObject({ ok: true });
  });

  test("allows the largest snapshot that the limits allow", () => {
    const { pods, containersPerPod, images, runtimeContainers, cpus, devices } = LIMITS;
    const list = <T>(length: number, item: (i: number) => T): T[] => Array.from({ length }, (_, i) => item(i));
    const snapshot = {
      pods: list(pods, (i) => ({
        metadata: { name: `p${i}`, namespace: "a", uid: `${i}` },
        spec: { containers: list(containersPerPod, (j) => ({ name: `c${j}`, resources: { limits: { cpu: "1" } } })) },
      })),
      runtime: {
        images: list(images, (i) => ({ id: `${i}`, repoTags: ["a"], repoDigests: [], size: "1" })),
        containers: list(runtimeContainers, (i) => ({ id: `${i}`, podSandboxId: "1", metadata: { name: "c" } })),
        sandboxes: list(runtimeContainers, (i) => ({ id: `${i}`, metadata: { name: "c", uid: "1" } })),
      },
      machine: { cpus: list(cpus, (i) => ({ cpu: i, core: i, socket: 0, numa: 0 })) },
      devices: list(devices, (i) => ({ resource: "a/b", id: `${i}`, health: "Healthy", numaNodes: [0] })),
    };
    for (const part of [
      { snapshot },
      { snapshot: { pods: snapshot.pods } },
      { snapshot: { runtime: snapshot.runtime } },
    ])
      expect(parseJson(bytes(JSON.stringify(part)))).toMatchObject({ ok: true });
  });
});
