import { once } from "node:events";
import { copyFileSync, existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { gunzipSync, gzipSync } from "node:zlib";
import { beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { EXIT } from "../../api/cli/terminal.ts";
import { newToken } from "../../api/http/auth/tokens.ts";
import { sha256 } from "../../api/server/digest.ts";
import { openNode } from "../../db/sqlite/node/open.ts";
import { exampleSnapshot } from "../contract/api-subject.ts";
import { decisionRow, resultRow, snapshotRow, value } from "../contract/store-rows.ts";
import { startedApi } from "../kit/api.ts";
import { RAM_DISK } from "../kit/ram-disk.ts";
import { scratchFolder } from "../kit/scratch.ts";
import { run, start } from "./run.ts";

/** The number of rows of a history that takes a while to move. */
const MANY = 3000;
const DAY_MS = 24 * 3600 * 1000;

describe("history export and import", () => {
  const folder = scratchFolder(RAM_DISK);
  /** A data directory that an API has written, and its export. */
  let lived: string;
  let file: string;
  let ids: readonly string[];
  /** The readable form of `lived`, which no test changes. */
  let before: Awaited<ReturnType<typeof seen>>;
  const at = (name: string): string => join(folder, name);
  const into = (dataDir: string): readonly string[] => ["--data-dir", dataDir];

  beforeAll(async () => {
    lived = at("lived");
    const api = await startedApi({ dataDir: lived, threads: 0 });
    const found: string[] = [];
    for (const node of ["n1", "n2"])
      for (const kind of ["cgroups", "allocatable"])
        for (const sequence of [1, 2]) {
          const response = await fetch(`${api.url}/v1/decisions/${kind}`, {
            method: "POST",
            headers: { "content-type": "application/json" },
            body: JSON.stringify({ snapshot: exampleSnapshot(node, { sequence }) }),
          });
          found.push(((await response.json()) as { id: string }).id);
        }
    await api.close();
    ids = [...new Set(found)];
    file = at("history.ndjson.gz");
    const ran = await run(["history", "export", file, ...into(lived)]);
    expect([ran.code, ran.stderr]).toEqual([0, expect.stringMatching(/history\.ndjson\.gz: [\d.]+ KiB, \d+ rows\n$/)]);
    before = await seen(into(lived));
  });

  /** A history as the commands print it for people. */
  const seen = async (args: readonly string[]) => {
    const shown = [];
    for (const id of ids) shown.push((await run(["history", "show", id, "-o", "json", ...args])).stdout);
    const { stdout } = await run(["replay", "--since", "1h", ...args]);
    return { shown, list: (await run(["history", ...args])).stdout, replayed: stdout };
  };

  test("imported decisions are shown and replayed the same, and a second import adds nothing", async () => {
    const to = at("moved");
    const first = await run(["history", "import", file, ...into(to)]);
    expect([first.code, first.stdout]).toEqual([
      0,
      expect.stringMatching(/^imported: decisions 4, snapshots 4, nodes 2; read /),
    ]);
    const again = await run(["history", "import", file, ...into(to)]);
    expect(again.stdout).toMatch(/^imported: decisions 0 \(4 were there\), snapshots 0 \(4 were there\), nodes 2;/);
    expect(await seen(into(to))).toEqual(before);
    expect(before.replayed).toMatch(/SAME/);
  });

  test("work through a pipe, for one node", async () => {
    const out = await run(["history", "export", "--node", "n1", "--since", "1h", ...into(lived)]);
    const [header = "", ...lines] = out.stdout.trimEnd().split("\n");
    expect(JSON.parse(header)).toMatchObject({ type: "nodewise-history", formatVersion: 1, node: "n1" });
    expect(JSON.parse(lines.at(-1) ?? "")).toEqual({ type: "end", rows: lines.length - 1 });
    const imported = await run(["history", "import", ...into(at("piped"))], { input: out.stdout });
    expect(imported.stdout).toMatch(/^imported: decisions 2, snapshots 2, nodes 1\n$/);
    expect((await run(["history", "export", "--node", "n3", ...into(lived)])).stderr).toMatch(
      /no such node: did you mean/,
    );
  });

  test("work into a running API", async () => {
    const token = newToken().text;
    const dataDir = at("served");
    const api = await startedApi({ dataDir, threads: 1, adminTokenHash: sha256(token) });
    onTestFinished(() => api.close());
    const to = ["--api", api.url];
    const env = { NODEWISE_TOKEN: token };
    const ran = await run(["history", "import", file, ...to], { env });
    expect([ran.code, ran.stdout]).toEqual([0, expect.stringMatching(/^imported: decisions 4, /)]);
    for (const [i, id] of ids.entries())
      expect((await run(["history", "show", id, "-o", "json", ...to], { env })).stdout).toBe(before.shown[i]);
    const back = await run(["history", "export", at("back.ndjson.gz"), ...to], { env });
    expect([back.code, back.stderr]).toEqual([0, expect.stringMatching(/back\.ndjson\.gz: [\d.]+ KiB, \d+ rows\n$/)]);
    expect((await run(["history", "import", at("back.ndjson.gz"), ...into(at("back"))])).stdout).toMatch(
      /^imported: decisions 4, snapshots 4, nodes 2/,
    );
    expect(await seen(into(at("back")))).toEqual(before);
    const unknown = await run(["history", "export", "--node", "n3", ...to], { env });
    expect([unknown.code, unknown.stdout, unknown.stderr]).toEqual([
      EXIT.badInput,
      "",
      expect.stringMatching(/404 unknown_node: there is no node `n3`; there are n1, n2/),
    ]);
    const both = await run(["history", "export", "--tokens", ...to], { env });
    expect([both.code, both.stderr]).toEqual([EXIT.badInput, expect.stringContaining("--tokens")]);
    const refused = await run(["history", "import", file, ...to], { env: { NODEWISE_TOKEN: newToken().text } });
    expect([refused.code, refused.stderr]).toEqual([
      EXIT.failed,
      expect.stringMatching(/^nodewise: lines 2 to \d+: .* 401 unauthorized: /),
    ]);
  });

  test("report a truncated file, a broken line and a newer format, and keep what came before", async () => {
    const text = gunzipSync(readFileSync(file)).toString();
    const lines = text.trimEnd().split("\n");
    const tried = async (name: string, content: string | Buffer, message: RegExp, code: number = EXIT.failed) => {
      writeFileSync(at(name), content);
      const ran = await run(["history", "import", at(name), ...into(at(`${name}.d`))]);
      expect(ran.stderr).toMatch(message);
      expect(ran.stderr.trimEnd()).not.toContain("\n");
      expect(ran.code).toBe(code);
    };
    const second = lines.findIndex((line, i) => i > 6 && line.startsWith('{"type":"decision"'));
    const head = lines.slice(0, second).join("\n");
    await tried(
      "cut",
      `${head}\n${lines[second]?.slice(0, 200)}`,
      new RegExp(`cut ends within line ${second + 1}; what is before it is imported; run the export to its end`),
    );
    expect((await run(["history", ...into(at("cut.d"))])).stdout).toContain(ids[0]);
    expect((await run(["history", "import", file, ...into(at("cut.d"))])).code).toBe(0);
    await tried("no-end", lines.slice(0, -1).join("\n"), new RegExp(`ends within line ${lines.length}; `));
    await tried("cut.gz", gzipSync(text).subarray(0, -200), /ends within line \d+; /);
    await tried(
      "broken",
      [...lines.slice(0, second), '{"type":"decision"}', ...lines.slice(second)].join("\n"),
      new RegExp(`^nodewise: line ${second + 1}: id: .*; what is before it is imported; correct or remove that line`),
    );
    expect((await run(["history", ...into(at("broken.d"))])).stdout).toContain(ids[0]);
    await tried(
      "newer",
      text.replace('"formatVersion":1', '"formatVersion":2'),
      /^nodewise: line 1: it was written by nodewise [\d.]+ in form 2, and this one reads up to 1: upgrade nodewise/,
      EXIT.badInput,
    );
    const lacking = lines.filter((_, i) => i !== second);
    await tried(
      "lacking",
      lacking.join("\n"),
      /line \d+: the export wrote \d+ rows, and \d+ arrived; .*; lines are missing/,
    );
    await tried("other", '{"a":1}\n', /line 1: it is not the first line of an exported history: type: /, EXIT.badInput);
    await tried("empty", "", /empty ends within line 1; /);
    for (const name of ["newer", "other", "empty"]) expect(existsSync(at(`${name}.d`))).toBe(false);
    const odd = async (args: readonly string[], message: RegExp) => {
      const ran = await run(["history", "import", ...args]);
      expect([ran.code, ran.stderr]).toEqual([EXIT.badInput, expect.stringMatching(message)]);
    };
    await odd([folder, ...into(at("x"))], /is a folder: name the file/);
    await odd([file, "--api", "http://127.0.0.1:1", ...into(at("x"))], /--api and --data-dir name two places/);
    const none = await run(["history", "import", at("none"), ...into(at("x"))]);
    expect([none.code, none.stderr]).toEqual([EXIT.badInput, expect.stringContaining("none: cannot be read (ENOENT)")]);
  });

  test("split a row larger than the body limit of the API", async () => {
    const from = at("wide");
    const store = value(openNode({ file: join(from, "history.db") }));
    const images = JSON.stringify({
      images: Array.from({ length: 9000 }, (_, i) => ({ name: `image-${i}`.repeat(100) })),
    });
    const snapshot = snapshotRow({ node: "n1", body: images });
    const decision = decisionRow({ node: "n1", snapshotId: snapshot.id, decidedAtMs: Date.now(), body: images });
    value(await store.record({ snapshot, decision }));
    await store.close();
    const [out, to] = [at("wide.ndjson"), at("wide-moved")];
    expect((await run(["history", "export", out, ...into(from)])).code).toBe(0);
    expect(
      Math.max(
        ...readFileSync(out, "utf8")
          .split("\n")
          .map(({ length }) => length),
      ),
    ).toBeGreaterThan(8 * 1024 * 1024);
    const start = (maxBodyBytes?: number) =>
      startedApi({
        dataDir: to,
        threads: 0,
        ...(maxBodyBytes === undefined ? {} : { limits: { bodyBytes: maxBodyBytes } }),
      });
    const small = await start(64 * 1024);
    const refused = await run(["history", "import", out, "--api", small.url]);
    expect([refused.code, refused.stderr]).toEqual([
      EXIT.failed,
      expect.stringMatching(/lines 2 to 3: .* 413 body_too_large: .*--max-body-bytes/),
    ]);
    await small.close();
    const api = await start();
    expect((await run(["history", "import", out, "--api", api.url])).stdout).toMatch(
      /^imported: decisions 1, snapshots 1, /,
    );
    await api.close();
    expect(await held(to)).toEqual(await held(from));
  });

  test("of two exports into one file one ends, and the other is refused", async () => {
    const from = at("large");
    await large(from);
    const out = at("twice.ndjson");
    const ends = await Promise.all([1, 2].map(() => run(["history", "export", out, ...into(from)], { cwd: folder })));
    expect(ends.map(({ code }) => code)).toContain(0);
    for (const { code, stderr } of ends)
      expect(stderr).toMatch(
        code === 0 ? /rows\n$/ : /another export writes to it: wait until it has ended|is there already/,
      );
    expect((await run(["history", "import", out, ...into(at("twice-moved"))])).code).toBe(0);
    expect(await held(at("twice-moved"))).toEqual(await held(from));
  });

  /** Makes a history of many rows, the oldest of which are past an API's retention. */
  async function large(dataDir: string): Promise<void> {
    const store = value(openNode({ file: join(dataDir, "history.db") }));
    const from = Date.now() - 40 * DAY_MS;
    await Promise.all(
      Array.from({ length: MANY }, async (_, i) => {
        const node = `n${i % 20}`;
        const storedAtMs = from + i * 60_000;
        const shared = JSON.stringify(`${node} `.repeat(600));
        const snapshot = snapshotRow({ node, storedAtMs, sequence: i, body: shared, repeats: [[0, shared.length]] });
        const decision = decisionRow({
          node,
          snapshotId: snapshot.id,
          decidedAtMs: storedAtMs,
          body: JSON.stringify(`${i} `.repeat(500)),
        });
        value(await store.record({ snapshot, decision }));
        value(await store.addResults(decision.id, [resultRow()]));
      }),
    );
    await store.close();
  }
  /** The contents of a store: its counts, and its rows in export order. */
  async function held(dataDir: string) {
    const store = value(openNode({ file: join(dataDir, "history.db") }));
    const rows: unknown[] = [];
    for await (const row of store.streamDecisions({})) rows.push({ ...value(row), seq: 0 });
    const fleet = value(await store.listFleet(0));
    await store.close();
    return { rows, fleet };
  }

  test("continue after being killed again and again, without losing or duplicating rows", async () => {
    const from = at("large");
    if (!existsSync(from)) await large(from);
    const [out, to] = [at("large.ndjson"), at("large-moved")];
    /** Runs a command that is killed a little later each time, until it finishes. */
    const again = async (args: readonly string[]): Promise<{ kills: number; stderr: string }> => {
      for (let kills = 0; ; kills++) {
        const child = start(args);
        let stderr = "";
        child.stderr.on("data", (chunk) => {
          stderr += chunk;
        });
        const ended = once(child, "exit");
        const killed = sleep(500 + 150 * kills).then(() => child.kill("SIGKILL"));
        const [code] = await ended;
        await killed;
        // if the command was killed after its last step, there is nothing left to do
        if (kills > 0 && code === EXIT.badInput && stderr.includes("is there already")) return { kills, stderr };
        if (code !== null) {
          expect(stderr).not.toMatch(/error|cannot/);
          expect(code).toBe(0);
          return { kills, stderr };
        }
      }
    };
    expect((await again(["history", "export", out, ...into(from)])).kills).toBeGreaterThan(0);
    expect(existsSync(`${out}.part`) || existsSync(`${out}.place`)).toBe(false);
    const { kills, stderr } = await again(["history", "import", out, ...into(to)]);
    expect(kills).toBeGreaterThan(0);
    expect(stderr).toMatch(/the oldest decision is of 20[^\n]*start it with 4\d days before you import/);
    expect(await held(to)).toEqual(await held(from));
    const api = await startedApi({
      dataDir: from,
      threads: 1,
      retention: { maxAgeMs: 100 * DAY_MS },
    });
    onTestFinished(() => api.close());
    const [overHttp, toOther] = [at("http.ndjson.gz"), at("http-moved")];
    expect((await again(["history", "export", overHttp, "--api", api.url])).kills).toBeGreaterThan(0);
    expect((await run(["history", "import", overHttp, ...into(toOther)])).code).toBe(0);
    expect(await held(toOther)).toEqual(await held(to));
    // an export that was interrupted after its first part continues there
    copyFileSync(out, at("whole"));
    const place = at("left.place");
    const first = readFileSync(out, "utf8").split("\n").slice(0, 400);
    const other = await run(["history", "export", out, ...into(from)]);
    expect([other.code, other.stderr]).toEqual([
      EXIT.badInput,
      expect.stringMatching(/is there already: name another file/),
    ]);
    writeFileSync(at("left.part"), `${first.join("\n")}\n`);
    writeFileSync(place, JSON.stringify({ asked: ["another"], bytes: 0, reached: {} }));
    writeFileSync(at("worn.part"), "");
    writeFileSync(at("worn.place"), "{");
    const worn = await run(["history", "export", at("worn"), ...into(from)]);
    expect([worn.code, worn.stderr]).toEqual([
      EXIT.badInput,
      expect.stringContaining("is of an export with other options"),
    ]);
    const nowhere = await run(["history", "export", at("no/such/file"), ...into(from)]);
    expect([nowhere.code, nowhere.stderr]).toEqual([
      EXIT.failed,
      expect.stringMatching(/^nodewise: .*file cannot be written \(ENOENT\): make room or name another file/),
    ]);
    const elsewhere = await run(["history", "export", at("left"), ...into(from)]);
    expect(elsewhere.stderr).toMatch(
      /is of an export with other options: give the same options and it continues, or remove/,
    );
  });
});
