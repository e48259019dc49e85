import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { ended, printed, start } from "../cli/run.ts";
import { removedBy } from "./gc/daemon.ts";
import { ImageStory, tag } from "./gc/image-story.ts";
import { GcNode } from "./gc/node.ts";
import { noContainerd } from "./gc/skip.ts";
import { freePort } from "./pods/port.ts";

const START_MS = 300_000;
const TEST_MS = 300_000;
const MIB = 1024 * 1024;
const DISK_BYTES = 96 * MIB;
const THRESHOLDS = { high: 80, low: 78 };

interface Removal {
  readonly id: string;
  readonly names: readonly string[];
  readonly bytes: number;
  readonly why: string;
  readonly end: string;
  readonly at: string;
  readonly decisionId: string;
  readonly againAt: string | null;
}
const why = noContainerd("images with a history");

describe.skipIf(why !== undefined)("collections of a daemon whose API is another process", { timeout: TEST_MS }, () => {
  let node: GcNode;
  let story: ImageStory;
  let api: ReturnType<typeof start> | undefined;
  let url: string;
  const startApi = async (port: string): Promise<string> => {
    api = start(["api", "--port", port], { env: { NODEWISE_DATA_DIR: join(node.dir, "history") } });
    return (await printed(api, /\n/)).trim();
  };
  const stopApi = async (): Promise<void> => {
    if (api === undefined) return;
    const end = ended(api);
    api.kill("SIGTERM");
    await end;
    api = undefined;
  };
  beforeAll(async () => {
    node = await GcNode.start(DISK_BYTES);
    node.collectFrom(THRESHOLDS);
    // a port that no other program gets while the API is away
    url = await startApi(String(await freePort()));
    await node.startDaemon({ api: url }).nextTurn();
    story = new ImageStory(node, THRESHOLDS);
  }, START_MS);
  afterAll(async () => {
    await stopApi();
    await node?.stop();
  }, START_MS);

  const get = async <T>(path: string): Promise<T> => (await (await fetch(`${url}${path}`)).json()) as T;
  /** The recorded removals, oldest first. */
  const removals = async (): Promise<readonly Removal[]> =>
    (await get<{ removals: readonly Removal[] }>("/v1/nodes/gc/removals?kind=image-gc")).removals.toReversed();
  /** Waits until the recorded removals satisfy the condition, and returns them. */
  const untilRecorded = async (isThere: (rows: readonly Removal[]) => boolean): Promise<readonly Removal[]> => {
    for (;;) {
      const rows = await removals();
      if (isThere(rows)) return rows;
      await node.daemon.nextTurn();
    }
  };

  test("are decided and stored by the API: what was removed when and why, and what was pulled again", async () => {
    const ids = new Map<string, string>();
    for (const [i, size] of [2, 2, 2, 2].entries()) ids.set(tag(`a-${i}`), await story.arrive(`a-${i}`, size));
    const { expected, images, sinceMs } = await story.cross(16 * MIB);
    expect(expected).toEqual([0, 1, 2].map((i) => tag(`a-${i}`)));
    const report = await node.daemon.collection("image-gc", sinceMs);
    expect(removedBy(report)).toEqual(expected);
    expect(report.answer?.decidedBy).toBe("api");
    expect(report.problems).toEqual([]);

    const rows = await untilRecorded((reported) => reported.length > 0);
    expect(
      rows.map(({ id, names, bytes, why, end, at, againAt }) => [id, names, bytes, why, end, at, againAt]),
    ).toEqual(
      expected.map((name) => {
        const size = images.find((one) => one.name === name)?.sizeBytes;
        return [ids.get(name), [name], size, "space", "removed", report.at, null];
      }),
    );
    expect(await get(`/v1/decisions/${rows[0]?.decisionId}`)).toMatchObject({ kind: "image-gc", node: "gc" });

    await story.arrive("a-1", 2);
    const [, again] = await untilRecorded((reported) => reported.some(({ againAt }) => againAt !== null));
    expect([again?.names, Date.parse(again?.againAt ?? "") > Date.parse(report.at)]).toEqual([[tag("a-1")], true]);
    expect((await removals()).map(({ againAt }) => againAt !== null)).toEqual([false, true, false]);
    expect(await get("/v1/nodes/gc/removals/summary")).toMatchObject({
      totals: { removed: 3, failed: 0, pulledAgain: 1 },
    });
  });

  test("lose and repeat nothing when the API is unreachable for a pass", async () => {
    const { daemon } = node;
    node.makeRoom();
    const before = await removals();
    await story.arrive("b-0", 2);
    await stopApi();
    const { expected, sinceMs } = await story.cross(16 * MIB);
    expect(expected).toEqual([tag("a-3"), tag("a-1"), tag("b-0")]);
    const report = await daemon.collection("image-gc", sinceMs);
    expect(removedBy(report)).toEqual(expected);
    expect(report.answer?.decidedBy).toBe("here");
    expect(await startApi(new URL(url).port)).toBe(url);

    const rows = await untilRecorded((reported) => reported.length > before.length);
    expect(rows.slice(0, before.length)).toEqual(before);
    const added = rows.slice(before.length);
    expect(added.map(({ names, end, at }) => [names, end, at])).toEqual(
      expected.map((name) => [[name], "removed", report.at]),
    );
    // The API decides the next passes again, and images that come back are known to have been here before.
    const later = await daemon.until("an answer of the API", () =>
      daemon.collections("image-gc", Date.parse(report.at) + 1).find(({ answer }) => answer?.decidedBy === "api"),
    );
    expect(later.removals).toEqual([]);
    await story.arrive("b-0", 2);
    const all = await untilRecorded((reported) => reported.at(-1)?.againAt !== null);
    expect(all.map(({ names, againAt }) => [names[0], againAt !== null])).toEqual([
      [tag("a-0"), false],
      [tag("a-1"), true],
      [tag("a-2"), false],
      [tag("a-3"), false],
      [tag("a-1"), false],
      [tag("b-0"), true],
    ]);
    expect(await get("/v1/nodes/gc/removals/summary")).toMatchObject({
      totals: { removed: 6, failed: 0, pulledAgain: 2 },
    });
  });
});
