import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join, matchesGlob, relative, resolve } from "node:path";
import { describe, expect, test } from "vitest";
import { KIND_SPECS } from "../api/model/kinds.ts";
import { scratchFolder } from "./kit/scratch.ts";
import { PROJECTS, projectsOf } from "./projects.ts";

const ROOT = resolve(import.meta.dirname, "..");
const sources = ["api", "db", "actuator"].flatMap((dir) => filesBelow(dir));

function filesBelow(dir: string, ending = ".ts"): string[] {
  return readdirSync(join(ROOT, dir), { recursive: true, encoding: "utf8" })
    .filter((f) => f.endsWith(ending))
    .map((f) => join(dir, f));
}
const read = (file: string): string => readFileSync(join(ROOT, file), "utf8");

/** Every import of a file: a path in the project, or a package's name. */
function importsOf(file: string): string[] {
  return specifiersIn(read(file)).map((s) => (s.startsWith(".") ? pathOf(file, s) : packageOf(s)));
}
const pathOf = (file: string, specifier: string): string => relative(ROOT, resolve(ROOT, dirname(file), specifier));
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

/**
 * The rooms, from the lowest floor to the highest. A file belongs to the room with the longest name that its path
 * begins with. INVARIANT: a file imports only from its own room and from rooms on lower floors; this includes type
 * imports.
 */
const FLOORS: readonly (readonly string[])[] = [
  ["api/base/"],
  ["api/model/"],
  ["api/profiles/"],
  ["api/decide/", "api/documents/", "api/machines/", "api/observe/", "api/text/", "actuator/plan/", "db/"],
  ["api/cluster/", "api/service/", "actuator/cgroupfs/", "actuator/core/"],
  ["api/dependencies.ts", "api/retention.ts", "actuator/apply/", "actuator/grpc/", "actuator/machine/"],
  ["api/http/", "db/sql/", "actuator/containerd/", "actuator/deviceplugin/", "actuator/podresources/"],
  ["api/ui/", "db/postgres/", "db/sqlite/", "actuator/dra/", "actuator/lifecycle/", "actuator/stats/"],
  ["api/app.ts", "db/open/", "actuator/pass/"],
  ["api/collector/", "api/server/", "api/worker/", "actuator/gc/", "actuator/manifests/"],
  ["api/server.ts", "api/worker.ts", "actuator/status/"],
  ["actuator/client/", "actuator/probes/dns/"],
  ["actuator/probes/net/"],
  ["actuator/probes/grpc/", "actuator/probes/http/"],
  ["actuator/probes/engine/"],
  ["actuator/daemon/"],
  ["actuator/pods/networking/", "actuator/pods/pod-clock.ts"],
  ["actuator/pods/change-notifier.ts"],
  ["actuator/pods/devices/", "actuator/pods/records/", "actuator/pods/volumes/"],
  ["actuator/pods/cgroups/", "actuator/pods/logs/", "actuator/pods/pod-lifecycle.ts"],
  ["actuator/pods/admission/", "actuator/pods/status/"],
  ["actuator/pods/eviction/", "actuator/pods/probing/", "actuator/pods/resize/"],
  ["actuator/pods/sync/"],
  ["actuator/pods/"],
  ["actuator/main.ts", "actuator/takeover/"],
  ["api/cli/"],
];
/**
 * The folders of the core, from the lowest floor to the highest, and the files that are in none of them. INVARIANT: a
 * mechanism imports no kind, and no import goes to a higher floor or to another folder of the same floor.
 */
const CORE = "api/decide/";
const CORE_FLOORS: typeof FLOORS = [
  [CORE, "api/decide/go/"],
  ["api/decide/resources/", "api/decide/probes/", "api/decide/container-gc/", "api/decide/image-gc/"],
  ["api/decide/pods/", "api/decide/topology/", "api/decide/eviction/", "api/decide/preemption/"],
  ["api/decide/allocatable/", "api/decide/cpus/", "api/decide/memory/", "api/decide/devices/", "api/decide/admission/"],
  ["api/decide/cgroups/", "api/decide/dra/", "api/decide/managers/"],
  ["api/decide/resize/"],
  ["api/decide/kinds/", "api/decide/lint/"],
];
const roomOf = (floors: typeof FLOORS, file: string): string | undefined =>
  floors
    .flat()
    .filter((room) => file.startsWith(room))
    .sort((a, b) => b.length - a.length)[0];

/**
 * The folders that no floor lists although it lists a folder beside them: otherwise a new folder of `db/` would belong
 * to the room `db/`. A folder inside a room need not be listed if no folder of that room is listed.
 */
function unlisted(floors: typeof FLOORS, files: readonly string[]): readonly string[] {
  const rooms = floors.flat();
  const parents = new Set(rooms.map((room) => `${dirname(room)}/`));
  const folders = files.flatMap((file) => {
    const parts = dirname(file).split("/");
    return parts.map((_, i) => `${parts.slice(0, i + 1).join("/")}/`);
  });
  const isListed = (folder: string): boolean => rooms.some((room) => room.startsWith(folder));
  return [...new Set(folders)].filter((folder) => parents.has(`${dirname(folder)}/`) && !isListed(folder));
}

/** The imports of a room's files that lead neither into the room itself nor to a lower floor. */
function importsUp(
  floors: typeof FLOORS,
  room: string,
  files: readonly string[],
  importsOf: (file: string) => readonly string[],
): readonly string[] {
  const floorOf = (one: string): number => floors.findIndex((rooms) => rooms.includes(one));
  const isUp = (target: string): boolean => {
    const other = roomOf(floors, target);
    return other === undefined || (other !== room && floorOf(other) >= floorOf(room));
  };
  return files
    .filter((file) => roomOf(floors, file) === room)
    .flatMap((file) =>
      importsOf(file)
        .filter(isUp)
        .map((target) => `${file} imports ${target}`),
    );
}
/** Migrations do not belong to a room. */
const isPath = (target: string): boolean =>
  target.includes("/") && !target.startsWith("@") && !target.startsWith("migrations/");
const CLI = "api/cli/";

/** The packages that a room, or all rooms with this prefix, may use. A more specific entry replaces a shorter one. */
const PACKAGES: Readonly<Record<string, readonly string[]>> = {
  "api/": ["hono", "zod", "pino", "prom-client", "@cloudflare/workers-types", "uplot", "node:"],
  "api/server.ts": ["@hono/node-server", "hono", "pino", "node:"],
  "api/ui/draw/": ["diff"],
  "api/server/": ["@hono/node-server", "hono", "pino", "prom-client", "uplot", "node:"],
  "api/server/otlp/": [
    "@opentelemetry/api",
    "@opentelemetry/core",
    "@opentelemetry/exporter-metrics-otlp-proto",
    "@opentelemetry/exporter-trace-otlp-proto",
    "@opentelemetry/resources",
    "@opentelemetry/sdk-metrics",
    "@opentelemetry/sdk-trace",
  ],
  "api/worker/": ["cloudflare:workers"],
  "api/base/": ["zod"],
  "api/model/": ["zod"],
  "api/service/": ["package.json", "zod"],
  "api/profiles/": [],
  "api/text/": ["string-width"],
  "api/decide/": [],
  "api/documents/": ["yaml", "zod", "node:"],
  "api/cluster/": ["@kubernetes/client-node", "openid-client", "p-limit", "node:"],
  "api/cli/": ["package.json", "commander", "yaml", "zod", "p-limit", "pino", "node:"],
  "db/": [],
  "db/open/": ["@cloudflare/workers-types", "node:"],
  "db/migrations.ts": ["node:"],
  "db/sql/": ["drizzle-orm"],
  "db/postgres/": ["drizzle-orm", "pg", "pgpass", "node:"],
  "db/sqlite/": ["drizzle-orm"],
  "db/sqlite/d1/": ["drizzle-orm", "@cloudflare/workers-types"],
  "db/sqlite/durable/": ["drizzle-orm", "@cloudflare/workers-types"],
  "db/sqlite/node/": ["drizzle-orm", "better-sqlite3", "node:"],
  "actuator/": ["yaml", "zod", "pino", "p-limit", "prom-client", "@grpc/grpc-js", "@grpc/proto-loader", "node:"],
  "actuator/plan/": [],
  "actuator/lifecycle/": [],
};
const packagesOf = (file: string): readonly string[] =>
  Object.entries(PACKAGES)
    .filter(([beginning]) => file.startsWith(beginning))
    .sort(([a], [b]) => b.length - a.length)[0]?.[1] ?? [];

/** The files in import cycles, or between two cycles. */
function cycles(files: readonly string[], importsOf: (file: string) => readonly string[]): readonly string[] {
  const left = new Map(files.map((file) => [file, importsOf(file).filter((target) => files.includes(target))]));
  // a file that imports none of the remaining files, or that none of them imports, is not in a cycle
  for (let size = -1; size !== left.size; ) {
    size = left.size;
    for (const [file, targets] of left) if (!targets.some((target) => left.has(target))) left.delete(file);
    const imported = new Set([...left.values()].flat());
    for (const file of left.keys()) if (!imported.has(file)) left.delete(file);
  }
  return [...left.keys()];
}

describe("imports", () => {
  test("every source file is in a room, and no room is empty", () => {
    expect(sources.filter((file) => roomOf(FLOORS, file) === undefined)).toEqual([]);
    for (const floors of [FLOORS, CORE_FLOORS]) {
      const filled = new Set(sources.map((file) => roomOf(floors, file)));
      expect(floors.flat().filter((room) => !filled.has(room))).toEqual([]);
    }
  });
  test("every folder beside a listed one is listed too, also in the core", () => {
    const core = sources.filter((file) => file.startsWith(CORE));
    expect([...unlisted(FLOORS, sources), ...unlisted(CORE_FLOORS, core)]).toEqual([]);
  });
  test("an unlisted folder is found, both outside of all rooms and beside rooms inside another one", () => {
    const floors = [["db/"], ["db/sql/", "db/open.ts", "api/cli/"]];
    const files = ["db/store.ts", "db/open.ts", "db/sql/a/b.ts", "db/mysql/a/b.ts", "db/mysql/c.ts", "api/cli/d/e.ts"];
    expect(unlisted(floors, files)).toEqual(["db/mysql/"]);
    expect(unlisted(floors, ["api/new/f.ts", "api/g.ts"])).toEqual(["api/new/"]);
  });
  test.each(FLOORS.flat())("%s imports from lower floors only", (room) => {
    expect(importsUp(FLOORS, room, sources, (file) => importsOf(file).filter(isPath))).toEqual([]);
  });
  test.each(CORE_FLOORS.flat())("%s imports from lower floors of the core only", (room) => {
    const inCore = (file: string): string[] => importsOf(file).filter((target) => target.startsWith(CORE));
    expect(importsUp(CORE_FLOORS, room, sources, inCore)).toEqual([]);
  });
  test("an import from a higher floor or from another room of the same floor is found", () => {
    const imports: Readonly<Record<string, readonly string[]>> = { "b/1": ["a/1", "b/2", "c/1", "d/1"] };
    const found = importsUp([["a/"], ["b/", "c/"], ["d/"]], "b/", ["a/1", "b/1"], (file) => imports[file] ?? []);
    expect(found).toEqual(["b/1 imports c/1", "b/1 imports d/1"]);
  });
  test("the actuator imports only the API's decision rooms, the API imports no actuator, and only the command line imports both", () => {
    const known = ["api/base/", "api/model/", "api/profiles/", "api/decide/", "api/documents/"];
    const isForbidden = (file: string, target: string): boolean =>
      file.startsWith("actuator/")
        ? /^(?:api|db)\//.test(target) && !known.some((room) => target.startsWith(room))
        : target.startsWith("actuator/");
    const wrong = sources
      .filter((file) => !file.startsWith(CLI))
      .flatMap((file) =>
        importsOf(file)
          .filter((target) => isForbidden(file, target))
          .map((target) => `${file} imports ${target}`),
      );
    expect(wrong).toEqual([]);
    expect(isForbidden("actuator/main.ts", "api/app.ts")).toBe(true);
  });
  test("each room uses only its allowed packages", () => {
    const wrong = sources.flatMap((file) =>
      importsOf(file)
        .filter((target) => !target.includes("/") || target.startsWith("@"))
        .filter((target) => !packagesOf(file).includes(target))
        .map((target) => `${file} imports ${target}`),
    );
    expect(wrong).toEqual([]);
  });
  test("there is no import cycle of files, type imports included", () => {
    expect(cycles(sources, importsOf)).toEqual([]);
  });
  test("there is no import cycle of folders, apart from imports between a folder and those inside it", () => {
    const isWithin = (one: string, other: string): boolean => `${one}/`.startsWith(`${other}/`);
    const imports = Map.groupBy(sources, (file) => dirname(file));
    const foldersOf = (folder: string): string[] =>
      [...new Set((imports.get(folder) ?? []).flatMap(importsOf).filter(isPath).map(dirname))].filter(
        (other) => !isWithin(folder, other) && !isWithin(other, folder),
      );
    expect(cycles([...imports.keys()], foldersOf)).toEqual([]);
  });
  test("an import cycle is found, without the files that lead to it or away from it", () => {
    const imports: Readonly<Record<string, readonly string[]>> = { a: ["b"], b: ["c"], c: ["d"], d: ["b", "e"], e: [] };
    expect(cycles(Object.keys(imports), (file) => imports[file] ?? [])).toEqual(["b", "c", "d"]);
  });
  test("a cycle of type imports is found", () => {
    const dir = scratchFolder();
    const texts = {
      one: 'import type { Two } from "./two.ts";\nexport interface One extends Two {}\n',
      two: 'export type { Three as Two } from "./three.ts";\n',
      three: 'import {\n  type One,\n} from "./one.ts";\nexport type Three = Partial<One>;\n',
      beside: 'import type { One } from "./one.ts";\nexport type Beside = One;\n',
    };
    const files = Object.entries(texts).map(([name, text]) => {
      writeFileSync(join(dir, `${name}.ts`), text);
      return relative(ROOT, join(dir, `${name}.ts`));
    });
    expect(cycles(files, importsOf)).toEqual(files.slice(0, 3));
  });
  test("what a module loads on demand is not already loaded at its start", () => {
    const lazy = sources.flatMap((file) =>
      [...read(file).matchAll(/\bimport\("(\.[^"]+)"\)/g)].map((m) => [file, pathOf(file, m[1] as string)] as const),
    );
    expect(lazy.length).toBeGreaterThan(30);
    expect(lazy.filter(([file, target]) => reachable(file, false).has(target))).toEqual([]);
  });
  test("the command line starts without the packages that only some commands need", () => {
    const packages = new Set(
      [...reachable("api/cli/main.ts", false)].flatMap((file) => loadedBy(file, false).map(packageOf)),
    );
    expect(packages).toContain("commander");
    const heavy = [
      "@grpc/grpc-js",
      "@kubernetes/client-node",
      "@opentelemetry/api",
      "better-sqlite3",
      "drizzle-orm",
      "hono",
      "pino",
      "prom-client",
    ];
    expect(heavy.filter((name) => packages.has(name))).toEqual([]);
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

/**
 * The specifiers that a file loads at run time, that is, without type imports; `isLazy`: including those that it loads
 * only on demand.
 */
function loadedBy(file: string, isLazy: boolean): string[] {
  const values = read(file)
    .replace(/^(?:import|export) type [^;]*? from .*$/gm, "")
    .replace(/^import \{(?:\s*type [^,}]+,?)+\s*\} from .*$/gm, "");
  return specifiersIn(isLazy ? values : values.replace(/\bimport\(/g, "("));
}
function reachable(entry: string, isLazy = true): Set<string> {
  const seen = new Set<string>();
  const queue = [entry];
  for (let file = queue.pop(); file !== undefined; file = queue.pop()) {
    if (seen.has(file)) continue;
    seen.add(file);
    for (const s of loadedBy(file, isLazy)) if (s.startsWith(".") && s.endsWith(".ts")) queue.push(pathOf(file, s));
  }
  return seen;
}

describe("the pure rooms", () => {
  const pure = sources.filter((f) =>
    ["api/base/", "api/decide/", "api/model/", "api/profiles/", "actuator/plan/", "actuator/lifecycle/"].some((d) =>
      f.startsWith(d),
    ),
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
  test("the patterns match what they forbid", () => {
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

/** Entry points, and what loads each of them without an import. */
const LOADED: Readonly<Record<string, string>> = {
  "api/worker.ts": "wrangler.toml: main, and the class of its Durable Objects",
  "api/cli/start.ts": "api/cli/nodewise.js, from where it finds it",
  "db/postgres/schema.ts": "drizzle.postgres.config.ts",
};

/** The names in `{ type A, b as c, d: e }`: A, b and d; with `isHere` their local names. */
const namesIn = (list: string, isHere = false): string[] =>
  list.split(",").flatMap((one) => {
    const names = one
      .trim()
      .replace(/^type /, "")
      .split(/ as |: /);
    return names[0] === "" ? [] : [names.at(isHere ? -1 : 0) as string];
  });

function exportsIn(text: string): string[] {
  const declared = /^export (?:async |abstract )*(?:const|let|function\*?|class|interface|type|enum) (\w+)/gm;
  return [
    ...[...text.matchAll(declared)].map((m) => m[1] as string),
    ...[...text.matchAll(/^export (?:type )?\{([^}]*)\}/gm)].flatMap((m) => namesIn(m[1] as string, true)),
    ...(/^export default /m.test(text) ? ["default"] : []),
  ];
}

/** The imports of a file as `file name`; `file *`: all names, or unknown ones. Pages load scripts from /assets. */
function importedNames(file: string, text: string): string[] {
  const of = (from: string, names: readonly string[]): string[] => {
    const target = from.startsWith("/assets/") ? from.replace("/assets", "api/ui/client") : pathOf(file, from);
    return names.map((name) => `${target} ${name}`);
  };
  const stated = /^(?:import|export)\b(?: type\b(?! from))?([^"';]*?)\bfrom\s+"([./][^"]+)"/gm;
  const loaded = /(?:\{([^{}]*)\} = await )?\bimport\(\s*"(\.[^"]+)"\)(?:\)\.(\w+))?/g;
  return [
    ...[...text.matchAll(stated)].flatMap(([, clause = "", from = ""]) => {
      if (clause.includes("*")) return of(from, ["*"]);
      const isDefault = /^\s*\w/.test(clause);
      return of(from, [...namesIn(/\{([^}]*)\}/.exec(clause)?.[1] ?? ""), ...(isDefault ? ["default"] : [])]);
    }),
    ...[...text.matchAll(loaded)].flatMap(([, braces, from = "", member]) =>
      of(from, member !== undefined ? [member] : braces === undefined ? ["*"] : namesIn(braces)),
    ),
  ];
}

describe("every file", () => {
  const LONGEST = 450;
  test(`has at most ${LONGEST} lines`, () => {
    expect(sources.filter((f) => read(f).split("\n").length > LONGEST)).toEqual([]);
  });
  test("is imported by another file, or is an entry point", () => {
    const all = [...sources, ...filesBelow("test")];
    const imported = new Set(all.flatMap(importsOf));
    const modules = sources.filter((f) => !f.endsWith(".d.ts"));
    expect(modules.filter((f) => !imported.has(f) && !(f in LOADED))).toEqual([]);
  });
  test("exports only what another file uses, or what both the file itself and a test use", () => {
    const modules = [...sources, ...filesBelow("api/ui/client", ".js")];
    const byOthers = new Set(["build.ts", ...modules].flatMap((file) => importedNames(file, read(file))));
    const byTests = new Set(filesBelow("test").flatMap((file) => importedNames(file, read(file))));
    const unused = modules.flatMap((file) => {
      if (file in LOADED || byOthers.has(`${file} *`)) return [];
      const text = read(file);
      const isTested = (name: string): boolean =>
        byTests.has(`${file} ${name}`) && [...text.matchAll(new RegExp(`\\b${name}\\b`, "g"))].length > 1;
      const exported = exportsIn(text).map((name) => `${file} ${name}`);
      return exported.filter((one) => !byOthers.has(one) && !isTested(one.slice(file.length + 1)));
    });
    expect(unused).toEqual([]);
  });
  test("has its exports and imports read from its text", () => {
    const text = [
      'import it, { type A, b as c } from "./one";',
      'import type * as all from "./two";',
      'const { d: e, f } = await import("./three");',
      'run((await import("./four")).g, import("./five"));',
      "export async function* h() {}",
      "export type I = A;",
      'export { type J, k as l } from "./six";',
      "export default h;",
    ].join("\n");
    expect(exportsIn(text)).toEqual(["h", "I", "J", "l", "default"]);
    const taken = [
      "one A",
      "one b",
      "one default",
      "two *",
      "six J",
      "six k",
      "three d",
      "three f",
      "four g",
      "five *",
    ];
    expect(importedNames("a/b.ts", text)).toEqual(taken.map((one) => `a/${one}`));
  });
  test("contains no marker of unfinished work", () => {
    const marker = new RegExp(["TO", "DO|FIX", "ME|X", "XX"].join(""));
    expect(sources.filter((f) => marker.test(read(f)))).toEqual([]);
  });
});

describe("every test file", () => {
  const tests = filesBelow("test").filter((file) => file.endsWith(".test.ts"));
  test("is in exactly one project, which is unit if no other project names the file", () => {
    expect(tests.filter((file) => projectsOf(file).length > 1)).toEqual([]);
    const globs = Object.values(PROJECTS).flat();
    expect(globs.filter((glob) => !tests.some((file) => matchesGlob(file, glob)))).toEqual([]);
  });
  const unit = tests.filter((file) => projectsOf(file).length === 0);
  test("of unit uses no simulated clock, on which leftover work would continue during the next file", () => {
    const isBelow = (file: string, seen: Set<string>): boolean => {
      if (file === "test/sim/pod-time.ts") return true;
      if (seen.has(file) || !/^test\/.*\.ts$/.test(file)) return false;
      seen.add(file);
      return importsOf(file).some((target) => isBelow(target, seen));
    };
    expect(unit.filter((file) => isBelow(file, new Set()))).toEqual([]);
    expect(tests.filter((file) => isBelow(file, new Set())).length).toBeGreaterThan(20);
  });
  test("of unit replaces no module, because the next file would get the replacement too", () => {
    expect(unit.length).toBeGreaterThan(100);
    expect(unit.filter((file) => /\bvi\.(?:do)?[mM]ock\(/.test(read(file)))).toEqual([]);
  });
});

describe("what users read", () => {
  /** Words that only this project uses, by the usual words for them. */
  const ODD: Readonly<Record<string, RegExp>> = {
    "reported, listed, shown": /\btold\b/i,
    admitted:
      /\b(?:pods?|it|they|nobody) (?:comes?|came) in\b|\blet in\b|\blets? (?:(?:a|no) )?(?:pods?|it|them|none|nobody) in\b/i,
    deferred: /\bput(?:s|ting)? (?:\w+ )?off\b/i,
    "for lack of": /\bfor want of\b/i,
  };
  /** Phrases that a reader has to guess at, by their meaning. They do not appear in printed texts either. */
  const RIDDLES: Readonly<Record<string, RegExp>> = {
    differs: /\b(?:would be|is|are|were|decided) otherwise\b|\bwould (?:be|have been) others\b/i,
    "would be removed, evicted": /\bwho would (?:have to )?(?:go|leave)\b|\bwould have had to go\b/i,
    checked: /\blook(?:s|ed|ing)? (?:it |them )?over\b/i,
    "the kubelet version whose rules answered": /\bas which kubelet\b/i,
    again: /\b(?:begun|made|started|decided|written) anew\b/i,
    "another program": /\bsomebody else\b/i,
    "is not known": /\bwhat is so of\b/i,
    "takes precedence over": /\bwhich counts? before\b/i,
  };
  const oddIn = (text: string): readonly string[] => found({ ...ODD, ...RIDDLES }, text);
  const found = (words: Readonly<Record<string, RegExp>>, text: string): readonly string[] =>
    Object.values(words).flatMap((pattern) => pattern.exec(text.replace(/\s+/g, " "))?.[0] ?? []);
  const guide = filesBelow("docs/guide", ".md");

  test.each(["README.md", ...guide])("%s uses the usual words", (file) => {
    expect(oddIn(read(file))).toEqual([]);
  });
  const shipped = ["api", "actuator"].flatMap((dir) =>
    [".proto", ".yml", ".yaml", ".toml", ".service", ".json", ".md", ".sql", "Containerfile"].flatMap((ending) =>
      filesBelow(dir, ending),
    ),
  );
  test("every other shipped file that is not TypeScript uses the usual words", () => {
    expect(shipped.length).toBeGreaterThan(40);
    expect(shipped.flatMap((file) => oddIn(read(file)).map((words) => `${file}: ${words}`))).toEqual([]);
  });
  test("the descriptions of the kinds and of the members of their schemas use the usual words", () => {
    const described = filesBelow("api/model").flatMap((file) =>
      [...read(file).matchAll(/\.describe\(\s*(["`])(.*?)\1,?\s*\)/gs)].map(([, , words = ""]) => words),
    );
    expect(described.length).toBeGreaterThan(300);
    const all = [...Object.values(KIND_SPECS).map(({ decides }) => decides), ...described];
    expect(all.filter((words) => oddIn(words).length > 0)).toEqual([]);
  });
  test("what is printed, logged and shown on pages, apart from decisions, contains no unclear phrase", () => {
    const isComment = (line: string): boolean => /^\s*(?:\*|\/\/|\/\*)/.test(line);
    const printed = sources.filter((file) => !file.startsWith(CORE) && !file.startsWith("api/model/"));
    const hits = printed.flatMap((file) => {
      const code = read(file)
        .split("\n")
        .filter((line) => !isComment(line));
      return found(RIDDLES, code.join("\n")).map((words) => `${file}: ${words}`);
    });
    expect(hits).toEqual([]);
  });
  test("unusual words and unclear phrases are found", () => {
    for (const words of [
      "What would be otherwise",
      "decisions would have been others",
      "who would have to leave",
      "looked over",
      "as which kubelet",
      "was begun anew",
      "somebody else",
      "which counts before it",
      "is told as",
      "whether a pod\ncomes in",
      "it came in",
      "lets a pod in",
      "let in",
      "put off",
      "puts one off",
      "for want of CPU",
    ])
      expect(oddIn(words), words).toHaveLength(1);
    expect(oddIn("outcomes may come in any order, let it read them, put it offline; otherwise it starts")).toEqual([]);
  });
});
