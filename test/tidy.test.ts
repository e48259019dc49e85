import { readdirSync, readFileSync } from "node:fs";
import { dirname, join, relative, resolve } from "node:path";
import { describe, expect, test } from "vitest";

const ROOT = resolve(import.meta.dirname, "..");
const sources = ["api", "db", "actuator"].flatMap(filesBelow);

function filesBelow(dir: string): string[] {
  return readdirSync(join(ROOT, dir), { recursive: true, encoding: "utf8" })
    .filter((f) => f.endsWith(".ts"))
    .map((f) => join(dir, f));
}
const read = (file: string): string => readFileSync(join(ROOT, file), "utf8");

/** Every module that a file imports: a path of the project, or a package's name. */
function importsOf(file: string): string[] {
  return specifiersIn(read(file)).map((s) =>
    s.startsWith(".") ? relative(ROOT, resolve(ROOT, dirname(file), s)) : packageOf(s),
  );
}
const specifiersIn = (text: string): string[] =>
  [...text.matchAll(/^(?:import|export)\b[^"';]*?\bfrom\s+"([^"]+)"|^import\s+"([^"]+)"|\bimport\(\s*"([^"]+)"/gm)].map(
    (m) => (m[1] ?? m[2] ?? m[3]) as string,
  );
const packageOf = (s: string): string => {
  if (s.startsWith("node:")) return "node:";
  return s
    .split("/")
    .slice(0, s.startsWith("@") ? 2 : 1)
    .join("/");
};

interface Room {
  readonly name: string;
  readonly holds: (file: string) => boolean;
  /** Beginnings of what it may import. */
  readonly may: readonly string[];
}
const under = (dir: string) => (f: string) => f.startsWith(dir);
/** Of the API but its command line, which composes. */
const API_ROOMS = readdirSync(join(ROOT, "api"), { withFileTypes: true })
  .filter((entry) => entry.name !== "cli" && (entry.isDirectory() || entry.name.endsWith(".ts")))
  .map((entry) => `api/${entry.name}${entry.isDirectory() ? "/" : ""}`);
const ROOMS: readonly Room[] = [
  { name: "api/text", holds: under("api/text/"), may: ["api/text/", "api/model/", "api/decide/"] },
  { name: "api/model", holds: under("api/model/"), may: ["api/model/", "zod"] },
  { name: "api/decide", holds: under("api/decide/"), may: ["api/model/", "api/decide/"] },
  {
    name: "db",
    holds: under("db/"),
    may: ["db/", "api/model/", "drizzle-orm", "better-sqlite3", "@cloudflare/workers-types", "node:"],
  },
  {
    name: "api/cli (the composition root)",
    holds: under("api/cli/"),
    may: ["api/", "db/", "actuator/", "package.json", "commander", "yaml", "zod", "pino", "node:"],
  },
  {
    name: "api",
    holds: (f) =>
      f.startsWith("api/") && !["api/model/", "api/decide/", "api/cli/", "api/text/"].some((d) => f.startsWith(d)),
    may: [
      ...API_ROOMS,
      "db/",
      // how documents are read and told apart, without a disk: of an upload as of a file
      "actuator/manifests/document-form.ts",
      "actuator/manifests/issue-place.ts",
      "actuator/manifests/parse.ts",
      "actuator/manifests/problem.ts",
      "actuator/manifests/source-document.ts",
      "hono",
      "@hono/node-server",
      "zod",
      "pino",
      "prom-client",
      "@cloudflare/workers-types",
      "uplot",
      "node:",
    ],
  },
  { name: "actuator/plan", holds: under("actuator/plan/"), may: ["actuator/plan/", "api/model/"] },
  {
    name: "actuator/lifecycle",
    holds: under("actuator/lifecycle/"),
    // of the runtime's door only the forms of its messages
    may: ["actuator/lifecycle/", "actuator/containerd/messages.ts", "api/model/"],
  },
  {
    name: "actuator",
    holds: (f) => f.startsWith("actuator/") && !["actuator/plan/", "actuator/lifecycle/"].some((d) => f.startsWith(d)),
    may: [
      "actuator/",
      "api/model/",
      "api/decide/",
      "yaml",
      "zod",
      "pino",
      "prom-client",
      "@grpc/grpc-js",
      "@grpc/proto-loader",
      "node:",
    ],
  },
];

describe("who may import whom", () => {
  test("every source file is in one room, and no room is empty", () => {
    for (const file of sources) expect(ROOMS.filter((r) => r.holds(file)).length, file).toBe(1);
    for (const room of ROOMS) expect(sources.filter(room.holds).length, room.name).toBeGreaterThan(0);
  });
  test.each(ROOMS)("$name imports only what it may", (room) => {
    const wrong = sources.filter(room.holds).flatMap((file) =>
      importsOf(file)
        .filter(
          (target) => !room.may.some((m) => (m.endsWith("/") || m === "node:" ? target.startsWith(m) : target === m)),
        )
        .map((target) => `${file} imports ${target}`),
    );
    expect(wrong).toEqual([]);
  });
  test("only the Node entries of api and db import node modules or native drivers", () => {
    const worker = reachable("api/worker.ts");
    expect(worker.size).toBeGreaterThan(20);
    const wrong = [...worker].flatMap((file) =>
      importsOf(file)
        .filter((t) => t === "node:" || t === "better-sqlite3")
        .map((t) => `${file} imports ${t}`),
    );
    expect(wrong).toEqual([]);
  });
});

/** Type imports vanish at run time, so they do not count here. */
function reachable(entry: string): Set<string> {
  const seen = new Set<string>();
  const queue = [entry];
  for (let file = queue.pop(); file !== undefined; file = queue.pop()) {
    if (seen.has(file)) continue;
    seen.add(file);
    const values = read(file)
      .replace(/^import type .*$/gm, "")
      .replace(/^export type .* from .*$/gm, "");
    for (const s of specifiersIn(values).filter((s) => s.startsWith(".")))
      queue.push(relative(ROOT, resolve(ROOT, dirname(file), s)));
  }
  return seen;
}

describe("the pure rooms", () => {
  const pure = sources.filter((f) =>
    ["api/decide/", "api/model/", "actuator/plan/", "actuator/lifecycle/"].some((d) => f.startsWith(d)),
  );
  const BANNED: readonly (readonly [string, RegExp])[] = [
    ["the clock", /\bDate\.now\b|\bnew Date\(\s*\)|\bperformance\./],
    ["randomness", /\bMath\.random\b|\bcrypto\./],
    ["async work", /\basync\b|\bawait\b|\bPromise\b/],
    ["timers", /\bset(?:Timeout|Interval|Immediate)\b/],
    ["the process", /\bprocess\.|\bglobalThis\b|\bfetch\(/],
    ["the console", /\bconsole\./],
  ];
  const codeOf = (file: string): string =>
    read(file)
      .replace(/\/\*[\s\S]*?\*\//g, "")
      .replace(/\/\/.*$/gm, "");
  test.each(BANNED)("do not use %s", (_name, pattern) => {
    expect(pure.length).toBeGreaterThan(30);
    expect(pure.filter((f) => pattern.test(codeOf(f)))).toEqual([]);
  });
  test("the scan sees what it looks for", () => {
    for (const [name, pattern] of BANNED) {
      const sample = {
        "the clock": "Date.now()",
        randomness: "Math.random()",
        "async work": "await x",
        timers: "setTimeout(f)",
        "the process": "process.env",
        "the console": "console.log",
      }[name];
      expect(pattern.test(sample as string), name).toBe(true);
    }
  });
});

describe("every file", () => {
  const LONGEST = 220;
  test(`has at most ${LONGEST} lines`, () => {
    expect(sources.filter((f) => read(f).split("\n").length > LONGEST)).toEqual([]);
  });
  test("is imported by another, or is an entry", () => {
    const entries = ["api/worker.ts", "api/cli/main.ts"];
    const all = [...sources, ...filesBelow("test")];
    const imported = new Set(all.flatMap(importsOf));
    const modules = sources.filter((f) => !f.endsWith(".d.ts"));
    expect(modules.filter((f) => !imported.has(f) && !entries.includes(f))).toEqual([]);
  });
  test("carries no leftover marker", () => {
    const marker = new RegExp(["TO", "DO|FIX", "ME|X", "XX"].join(""));
    expect(sources.filter((f) => marker.test(read(f)))).toEqual([]);
  });
});
