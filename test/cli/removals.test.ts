import { join } from "node:path";
import { beforeAll, describe, expect, test } from "vitest";
import { historyFile } from "../../db/open/node.ts";
import { openNode } from "../../db/sqlite/node/open.ts";
import {
  cameBack,
  containerPass,
  containerRemoval,
  imageRemoval,
  MINUTE,
  pass,
  recordPass,
} from "../contract/removal-rows.ts";
import { value } from "../contract/store-rows.ts";
import { expectAsShown } from "../docs/shown.ts";
import { sharedApi } from "../kit/api.ts";
import { scratchFolder } from "../kit/scratch.ts";
import { expectPublished } from "./published.ts";
import { run } from "./run.ts";

const NOW = Date.now();
const ago = (minutes: number): number => NOW - minutes * MINUTE;
const textOf = (ms: number): string => new Date(ms).toISOString();

describe("history removals", () => {
  const scratch = scratchFolder();
  const dataDir = join(scratch, "history");
  const env = { NODEWISE_DATA_DIR: dataDir };
  beforeAll(async () => {
    const store = value(openNode({ file: historyFile(dataDir) }));
    const app = imageRemoval("sha256:a1", {
      names: ["registry.example/app:1", "registry.example/app:latest"],
      sizeBytes: 700 * 2 ** 20,
    });
    const busy = imageRemoval("sha256:b2", { names: [], end: "failed", message: "busy\u001b[2J" });
    await recordPass(store, "n1", pass(ago(200), [app, busy]));
    await recordPass(store, "n1", pass(ago(110), [], { returns: [cameBack("sha256:a1", ago(110))] }));
    await recordPass(
      store,
      "n1",
      containerPass(
        ago(30),
        Array.from({ length: 600 }, (_, i) => containerRemoval(`c${i}`)),
      ),
    );
    await recordPass(store, "n2", pass(ago(10), [imageRemoval("other")]));
    const guides = { a: 22, b: 20, c: 12.1, d: 26 };
    const idOf = (name: string): string => `sha256:${name.repeat(63)}1`;
    const gone = Object.entries(guides).map(([name, mib]) =>
      imageRemoval(idOf(name), { names: [`localhost/gc-${name}:1`], sizeBytes: Math.round(mib * 2 ** 20) }),
    );
    await recordPass(store, "guide", pass(ago(90), gone));
    await recordPass(store, "guide", pass(ago(49), [], { returns: [cameBack(idOf("a"), ago(49))] }));
    await store.close();
  });
  const api = sharedApi({ dataDir });
  const list = async (...args: string[]) => {
    const { stdout, stderr, code } = await run(["history", "removals", "--node", "n1", "-o", "json", ...args], { env });
    expect([code, stderr]).toEqual([0, ""]);
    if (!args.includes("--api"))
      await expectPublished(args.includes("--summary") ? "history-removals-summary" : "history-removals", stdout);
    return JSON.parse(stdout);
  };

  test("a data directory and a running API print the same, over several pages", async () => {
    const [own, asked] = await Promise.all([list("--limit", "1000"), list("--limit", "1000", "--api", api.url)]);
    expect(own).toHaveLength(602);
    expect(asked).toEqual(own);
    expect(own.at(-1)).toMatchObject({
      id: "sha256:a1",
      at: textOf(ago(200)),
      againAt: textOf(ago(110)),
      why: "space",
    });
    const [summary, summaryAsked] = await Promise.all([list("--summary"), list("--summary", "--api", api.url)]);
    expect(summaryAsked).toEqual(summary);
    expect(summary).toMatchObject({ totals: { removed: 1, failed: 1, pulledAgain: 1, medianAwayMs: 90 * MINUTE } });
  });

  test("filters work in both places", async () => {
    for (const where of [[], ["--api", api.url]]) {
      const ids = async (...args: string[]) => (await list(...where, ...args)).map(({ id }: { id: string }) => id);
      expect(await ids("--image", "APP")).toEqual(["sha256:a1"]);
      expect(await ids("--image", "c1")).toEqual([]);
      expect(await ids("--search", "shop/web-0", "--limit", "2")).toEqual(["c599", "c598"]);
      expect(await ids("--end", "failed")).toEqual(["sha256:b2"]);
      expect(await ids("--since", "3h", "--limit", "1")).toEqual(["c599"]);
      expect(await ids("--until", "3h")).toEqual(["sha256:b2", "sha256:a1"]);
      expect(await list(...where, "--summary", "--since", "3h")).toMatchObject({ totals: { removed: 0 } });
    }
  });

  test("removals and their summary are printed as tables", async () => {
    const listed = await run(["history", "removals", "--node", "n1", "--until", "1h"], { env });
    const [header, failed, message, removed] = listed.stdout.split("\n");
    expect(header).toMatch(/^AT +TARGET +WHAT +SIZE +WHY +OPERATION +END +BACK AFTER +ID$/);
    expect(failed).toMatch(/^\S+Z +image +sha256:b2 +100 B +space +garbage-collect +failed +sha256:b2$/);
    expect(message).toBe("  busy␛[2J");
    expect(removed).toMatch(
      / image +registry\.example\/app:1 \+1 +700 MiB +space +garbage-collect +removed +1h30m +sha256:a1$/,
    );
    const containers = await run(["history", "removals", "--node", "n1", "--limit", "1"], { env });
    expect(containers.stdout).toMatch(/ container +shop\/web-0 server +per-container-limit /);
    const { stdout } = await run(["history", "removals", "--node", "n1", "--summary"], { env });
    expect(stdout.split("\n").slice(0, 3)).toEqual([
      "images: 1 removed (700 MiB), 1 failed, 0 stopped",
      "pulled again: 1 (100 %, 700 MiB), half of them within 1h30m",
      "others: 600 container removed",
    ]);
    expect(stdout).toMatch(
      /\nIMAGE +REMOVED +AGAIN +PULLED AGAIN +SIZE .*\nregistry\.example\/app:1 \+1 +1 +1 +700 MiB +700 MiB /,
    );
    const none = await run(["history", "removals", "--node", "n2", "--image", "nothing"], { env });
    expect(none).toMatchObject({ code: 0, stdout: "", stderr: "no such removals\n" });
  });

  test("the guide shows what is printed", async () => {
    const { stdout } = await run(["history", "removals", "--node", "guide", "--summary"], { env });
    expectAsShown("docs/guide/decide.md", "nodewise history removals --node n1 --summary", stdout);
  });

  test("invalid arguments are reported in one line", async () => {
    const faults = [
      [[], 2, /--node <name>' not specified/],
      [["--node", "n1", "--since", "yesterday"], 2, /^nodewise: --since: `yesterday` is neither a time/],
      [["--node", "n1", "--summary", "--image", "x"], 2, /cannot be used with option/],
      [["--node", "n9"], 2, /^nodewise: --node n9: the history has no such node: did you mean n1 or n2\?\n$/],
      [["--node", "n9", "--api", api.url], 2, /answered 404 unknown_node: /],
      [["--node", "n1", "--api", "ftp://x"], 2, /^nodewise: --api: `ftp:\/\/x` is not an address/],
    ] as const;
    for (const [args, code, pattern] of faults) {
      const ran = await run(["history", "removals", ...args], { env });
      expect([ran.code, ran.stdout], ran.stderr).toEqual([code, ""]);
      expect(ran.stderr).toMatch(pattern);
    }
  });
});
