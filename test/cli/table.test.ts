import { describe, expect, test } from "vitest";
import { columnsOf, isColorful } from "../../api/cli/terminal.ts";
import type { CpusDecision } from "../../api/model/cpus.ts";
import type { DevicesDecision } from "../../api/model/devices.ts";
import type { PodRef } from "../../api/model/forms.ts";
import { KIND_SPECS } from "../../api/model/kinds.ts";
import { NEWEST } from "../../api/profiles/index.ts";
import { humanBytes, magnitude } from "../../api/text/size.ts";
import { clip, clipStart, colorPaint, type Paint, plainPaint, printable, widthOf, wrap } from "../../api/text/style.ts";
import { bar, table, treeLines } from "../../api/text/table.ts";
import { cpuPicture } from "../../api/text/tables/cpus.ts";
import { answerText } from "../../api/text/tables/index.ts";
import { realNode } from "../kit/real-node.ts";
import { run } from "./run.ts";

const COLUMNS = [
  { title: "NAME", shrinkTo: 6 },
  { title: "SIZE", align: "right" },
  { title: "NOTE", giveUp: 1 },
  { title: "MORE", giveUp: 2 },
] as const;
const ROWS = [
  { cells: ["a-long-name", "12", "first", "x"], notes: ["  below"] },
  { cells: ["b", "1234", { text: "second", color: "red" }, ""] },
] as const;
const drawn = (columns: number, paint = plainPaint) => table(COLUMNS, ROWS, columns, paint);

describe("a table", () => {
  test("has aligned columns, no trailing spaces, and notes below their row", () => {
    expect(drawn(80)).toBe(
      [
        "NAME         SIZE  NOTE    MORE",
        "a-long-name    12  first   x",
        "  below",
        "b            1234  second",
        "",
      ].join("\n"),
    );
  });

  test("drops columns in their order, then shrinks them, as the terminal gets narrower", () => {
    expect(drawn(29).split("\n")[0]).toBe("NAME       SIZE  NOTE    MORE");
    expect(drawn(28).split("\n")[0]).toBe("NAME         SIZE  MORE");
    expect(drawn(20).split("\n")[0]).toBe("NAME         SIZE");
    expect(drawn(12)).toBe(
      "NAME    SIZE\na-long    12\n-name\n  NOTE first\n  MORE x\n  below\nb       1234\n  NOTE\n  second\n",
    );
    const below = "  NOTE first\n  MORE x\n  below\nb\n  SIZE 1234\n  NOTE\n  second\n";
    expect(drawn(11)).toBe(`NAME\na-long-name\n  SIZE 12\n${below}`);
    expect(drawn(3)).toBe(`NAME\na-long\n-name\n  SIZE 12\n${below}`);
    const [, size, note, more] = COLUMNS;
    const gone = [note, more].map((column) => ({ ...column, giveUpTo: "nothing" as const }));
    const cut = table([{ title: "NAME", shrinkTo: 6, cut: "end" }, size, ...gone], ROWS, 12, plainPaint);
    expect(cut).toBe("NAME    SIZE\na-lon…    12\n  below\nb       1234\n");
  });

  test("keeps essential cells by shortening them or continuing below", () => {
    const columns = [
      { title: "ID", giveUp: 1, giveUpTo: (id: string) => id.slice(0, 4) },
      { title: "POD", giveUp: 2 },
      { title: "REASON", giveUp: 3 },
      { title: "WHAT", shrinkTo: 8 },
    ] as const;
    const rows = [{ cells: ["12345678", "shop/web", "OutOfcpu", "refused by it"], notes: ["  note"] }];
    const at = (width: number) => table(columns, rows, width, plainPaint);
    expect(at(60)).toBe("ID        POD       REASON    WHAT\n12345678  shop/web  OutOfcpu  refused by it\n  note\n");
    expect(at(39)).toBe("ID    POD       REASON    WHAT\n1234  shop/web  OutOfcpu  refused by it\n  note\n");
    expect(at(30)).toBe("ID    REASON    WHAT\n1234  OutOfcpu  refused by it\n  POD shop/web\n  note\n");
    expect(at(28)).toBe(
      "ID    REASON    WHAT\n1234  OutOfcpu  refused by\n                it\n  POD shop/web\n  note\n",
    );
    expect(at(15)).toBe("ID    WHAT\n1234  refused\n      by it\n  POD shop/web\n  REASON\n  OutOfcpu\n  note\n");
  });

  test("prints several dropped columns below on one line, and no bar", () => {
    const columns = [
      { title: "CGROUP", shrinkTo: 11 },
      { title: "SIZE" },
      { title: "LIMIT", giveUp: 2 },
      { title: "MEMS", giveUp: 3 },
      { title: "", giveUp: 1 },
    ];
    const lines = treeLines(
      ["/pods", "/pods/shop.web1", "/pods/shop.web1/c"],
      (path) => path,
      (path) => path.slice(0, path.lastIndexOf("/")),
    );
    const rows = lines.map((tree, i) => ({
      cells: [tree.item.slice(tree.item.lastIndexOf("/") + 1), "1 GiB", i === 0 ? "" : "2", "0", "████"],
      tree,
    }));
    const at = (width: number) => table(columns, rows, width, plainPaint).trimEnd().split("\n");
    expect(at(23)).toEqual([
      "CGROUP        SIZE",
      "pods          1 GiB",
      "│    MEMS 0",
      "└─ shop.web1  1 GiB",
      "   │    LIMIT 2  MEMS 0",
      "   └─ c       1 GiB",
      "           LIMIT 2",
      "           MEMS 0",
    ]);
    expect(at(18).slice(3, 7)).toEqual(["└─ shop.     1 GiB", "   │  web1", "   │    LIMIT 2", "   │    MEMS 0"]);
  });

  test("leaves out a column that is empty in every row", () => {
    expect(table(COLUMNS, [{ cells: ["a", "", "", ""] }], 80, plainPaint)).toBe("NAME\na\n");
  });

  test("has the same width with and without colours", () => {
    const esc = String.fromCharCode(27);
    const colored = drawn(80, colorPaint);
    expect(colored).toContain(`${esc}[31msecond${esc}[39m`);
    expect(colored.split("\n").map(widthOf)).toEqual(drawn(80).split("\n").map(widthOf));
  });
});

describe("text functions", () => {
  test("replace control characters by their picture or code", () => {
    expect(printable("a\u001b[31mb\u0007\r\n\u202ec\u2028d")).toBe("a␛[31mb␇␍␊\\u202ec\\u2028d");
    expect(printable("pod-1.ü→│")).toBe("pod-1.ü→│");
  });

  test("cut at the end or at the start", () => {
    expect([clip("abcdef", 4), clip("abcd", 4), clipStart("abcdef", 4), clipStart("abcd", 4)]).toEqual([
      "abc…",
      "abcd",
      "…def",
      "abcd",
    ]);
  });

  test("count East Asian letters as two columns and marks as none, and do not cut them in half", () => {
    expect(["日本", "가", "e\u0301", "ｱ", "a界", "👍🏽"].map(widthOf)).toEqual([4, 2, 1, 1, 3, 2]);
    expect([clip("日本語", 4), clip("日本語", 6), clip("a日本", 4)]).toEqual(["日…", "日本語", "a日…"]);
    expect([clipStart("日本語", 4), clipStart("日本e\u0301", 4)]).toEqual(["…語", "…本e\u0301"]);
    expect(wrap("日本語 ab", 4)).toEqual(["日本", "語", "ab"]);
    const rows = [{ cells: ["日本", "1"] }, { cells: ["abcd", "22"] }];
    const drawn = table([{ title: "NAME" }, { title: "N", align: "right" }], rows, 80, plainPaint);
    expect(drawn).toBe("NAME   N\n日本   1\nabcd  22\n");
  });

  test("break a word longer than a line at a joint", () => {
    expect(wrap("a allocatableMemory.available", 20)).toEqual(["a", "allocatableMemory.", "available"]);
    expect(wrap("default/burst-lim", 12)).toEqual(["default/", "burst-lim"]);
    expect(wrap("a.bcdefghijkl", 8)).toEqual(["a.bcdefg", "hijkl"]);
  });

  test("print sizes with at most one decimal, and never 1024 of a unit", () => {
    const sizes = [0, 1, 1023, 1024, 1536, 1024 ** 2 - 1, 512 * 1024 ** 2, 25276510208, 2 ** 62].map(humanBytes);
    expect(sizes).toEqual(["0 B", "1 B", "1023 B", "1 KiB", "1.5 KiB", "1 MiB", "512 MiB", "23.5 GiB", "4 EiB"]);
  });

  test("give a quantity's magnitude in whole units, whatever its notation", () => {
    expect(["1800m", "1Ki", "100n", "9P", "", "x", undefined].map(magnitude)).toEqual([1.8, 1024, 1e-7, 9e15, 0, 0, 0]);
  });
});

describe("a usage bar", () => {
  const cells = (sizes: readonly number[], width: number): readonly number[] => {
    const counted: number[] = [];
    bar(
      sizes.map((size) => ({ size, draw: (n) => String(counted.push(n)) })),
      width,
    );
    return counted;
  };

  test("fills its width exactly and shows every non-empty part", () => {
    let seen = 0;
    for (let a = 0; a <= 30; a++) {
      for (let b = 0; b <= 30; b++) {
        for (let c = 0; c <= 30; c++) {
          if (a + b + c === 0) continue;
          const drawn = cells([a, b, c], 24);
          expect(drawn.reduce((x, y) => x + y, 0)).toBe(24);
          expect(drawn.map((n) => n > 0)).toEqual([a > 0, b > 0, c > 0]);
          seen++;
        }
      }
    }
    expect(seen).toBe(31 ** 3 - 1);
  });

  test("divides by size, and keeps a cell for a tiny part", () => {
    expect(cells([90, 5, 5], 20)).toEqual([18, 1, 1]);
    expect(cells([1_000_000, 1, 0], 10)).toEqual([9, 1, 0]);
    expect(cells([-5, 10], 10)).toEqual([0, 10]);
  });

  test("is empty when nothing has a size", () => {
    expect(bar([{ size: 0, draw: () => "x" }], 10)).toBe("");
  });
});

test("a tree draws every item below its parent, and items without one as roots", () => {
  const paths = ["/k", "/k/b", "/k/b/p1", "/k/b/p1/c", "/k/b/p2", "/k/g", "/other/x"];
  const lines = treeLines(
    paths,
    (p) => p,
    (p) => p.slice(0, p.lastIndexOf("/")),
  );
  expect(lines.map(({ branch, item }) => branch + item.slice(item.lastIndexOf("/")))).toEqual([
    "/k",
    "├─ /b",
    "│  ├─ /p1",
    "│  │  └─ /c",
    "│  └─ /p2",
    "└─ /g",
    "/x",
  ]);
  const below = lines.map((line) => line.below);
  expect(below).toEqual(["│  ", "│  │  ", "│  │  │  ", "│  │        ", "│        ", "      ", "   "]);
});

describe("the terminal", () => {
  test("uses colours only when it is a terminal, without NO_COLOR and not dumb", () => {
    expect(isColorful({}, true)).toBe(true);
    expect(isColorful({ NO_COLOR: "" }, true)).toBe(true);
    expect(isColorful({ NO_COLOR: "1" }, true)).toBe(false);
    expect(isColorful({ TERM: "dumb" }, true)).toBe(false);
    expect(isColorful({}, false)).toBe(false);
  });

  test("has the width of COLUMNS, else its own, else none", () => {
    expect(columnsOf({ COLUMNS: "70" }, 100)).toBe(70);
    expect(columnsOf({ COLUMNS: "x" }, 100)).toBe(100);
    expect(columnsOf({}, undefined)).toBe(Number.POSITIVE_INFINITY);
    expect(columnsOf({}, 0)).toBe(Number.POSITIVE_INFINITY);
  });
});

describe("a picture of CPUs", () => {
  const cpus = (count: number, caches: number) =>
    Array.from({ length: count }, (_, cpu) => {
      const core = cpu % (count / 2);
      return { cpu, core, socket: 0, numa: 0, uncoreCache: Math.floor(core / (count / 2 / caches)) };
    });
  const rows = (count: number, caches: number, columns: number) =>
    cpuPicture(cpus(count, caches), ({ cpu }) => String(cpu % 10), { columns, paint: plainPaint })
      .split("\n")
      .slice(1, -1)
      .map((line) => line.slice("SOCKET  NUMA  ".length));

  test("has the threads of a core side by side, and a bar between caches", () => {
    expect(rows(8, 2, 80)).toEqual(["04 15 │ 26 37  0-7"]);
  });

  test("breaks lines between caches where they fit, else between cores", () => {
    expect(rows(32, 4, 14 + 30)).toEqual(["06 17 28 39 │ 40 51 62 73", "84 95 06 17 │ 28 39 40 51"]);
    expect(rows(32, 1, 14 + 18)).toEqual(["06 17 28 39 40 51", "62 73 84 95 06 17", "28 39 40 51"]);
  });

  test("is not drawn for thousands of CPUs", () => {
    expect(rows(1024, 8, 120).join("").match(/\d\d/g)?.length).toBeGreaterThanOrEqual(512);
    expect(cpuPicture(cpus(1026, 1), () => "x", { columns: 80, paint: plainPaint })).toBe("");
    expect(cpuPicture([], () => "x", { columns: 80, paint: plainPaint })).toBe("");
  });
});

describe("an answer of decide cpus", () => {
  test("has the same text with and without colours", () => {
    const pod = { namespace: "default", name: "a", uid: "u" };
    const cpus = [0, 1, 2, 3].map((cpu) => ({ cpu, core: cpu, socket: 0, numa: 0 }));
    const managed = { startErrors: [], warnings: [], refusal: null, placements: [], reconcile: [], overlaps: [] };
    const decision: CpusDecision = {
      ...managed,
      policy: "static",
      options: { "full-pcpus-only": "true" },
      reserved: "0",
      sharedPool: "0,2-3",
      assigned: [{ container: "c", cpus: "1", exclusive: true }],
      assignments: [{ pod, container: "c", cpus: "1" }],
    };
    const { policyVersion } = NEWEST;
    const decided = { decision, reasons: [], needs: [] };
    const shown = { kind: "cpus", node: "n", policyVersion, decided, explain: "off" } as const;
    const text = (paint: Paint) => answerText({ ...shown, machine: { cpus }, asked: pod }, { ...SILENT, paint });
    expect(text(colorPaint)).not.toBe(text(plainPaint));
    const escapes = new RegExp(`${String.fromCharCode(27)}\\[\\d+m`, "g");
    expect(text(colorPaint).replace(escapes, "").replace(/ +$/gm, "")).toBe(text(plainPaint));
    const warned = { ...decision, warnings: ["cpu_manager_state: CPUs 1 belong to two"] };
    expect(
      answerText({ ...shown, decided: { ...shown.decided, decision: warned } }, { ...SILENT, paint: plainPaint }),
    ).toContain("\ncpu_manager_state: CPUs 1 belong to two\n");
    expect(text(plainPaint).replace(/\s+/g, " ")).toContain(
      "static with full-pcpus-only=true: reserved 0, shared pool 0,2-3 (3 CPUs) ",
    );
  });
});

describe("an answer of decide devices", () => {
  test("names double holders, conflicts between plugins, and pods that are gone", () => {
    const [a, b] = ["a", "b"].map((name) => ({ namespace: "default", name, uid: name })) as [PodRef, PodRef];
    const options = { envs: [{ name: "X", value: "1" }], mounts: [], devices: [], annotations: [], cdiDevices: [] };
    const conflicts = [
      {
        kind: "env" as const,
        name: "X",
        kept: { resource: "v.com/x", value: "1" },
        dropped: { resource: "v.com/y", value: "2" },
      },
    ];
    const decision: DevicesDecision = {
      startErrors: [],
      warnings: [],
      refusal: null,
      checkpointError: null,
      resources: [],
      assigned: [],
      assignments: [
        { pod: a, container: "c", devices: { "v.com/x": ["x0"] }, options: { ...options, conflicts }, pending: [] },
        { pod: b, container: "c", devices: { "v.com/x": ["x0"] }, options: null, pending: ["v.com/x"] },
      ],
      placements: [],
      overlaps: [{ resource: "v.com/x", device: "x0", pods: [a, b] }],
      purged: ["u-gone"],
      unanswered: [],
    };
    const decided = { decision, reasons: [], needs: [] };
    const { policyVersion } = NEWEST;
    const shown = { kind: "devices", node: "n", policyVersion, decided, explain: "off" } as const;
    expect(
      answerText(shown, { ...SILENT, paint: plainPaint })
        .split("\n")
        .slice(2),
    ).toEqual([
      "",
      "no plugin has registered a resource",
      "",
      "POD        CONTAINER  RESOURCE  DEVICES  ALSO GIVEN",
      "default/a  c          v.com/x   x0       1 env",
      "default/b  c          v.com/x   x0       (its plugin has not answered)",
      "taken back from pods that are gone: u-gone",
      "",
      "CONFLICT  OF           KEPT          IS DROPPED",
      "env X     default/a c  1 of v.com/x  2 of v.com/y",
      "",
    ]);
  });
});
const SILENT = { write: () => {}, warn: () => {}, columns: 80 };

test("at 80 columns all reservations are shown without a legend of missing bars, and kinds in full", async () => {
  const env = { COLUMNS: "80" };
  const { stdout } = await run(["decide", "allocatable", "--snapshot", realNode("snapshot.json")], { env });
  const [, titles] = stdout.split("\n");
  expect(titles).toMatch(/^RESOURCE +CAPACITY +kube +systemReserved +evictionHard +ALLOCATABLE$/);
  expect(stdout).toContain("\nmemory             23.5 GiB  512 MiB         512 MiB       500 MiB     22.1 GiB\n");
  expect(stdout).not.toContain("█");
  const kinds = (await run(["kinds"], { env })).stdout;
  expect(kinds).not.toContain("…");
  expect(kinds.split("\n").every((line) => line.length <= 80)).toBe(true);
  expect(kinds.replaceAll(/\s+/g, " ")).toContain(`allocatable ${KIND_SPECS.allocatable.decides} cgroups `);
});
