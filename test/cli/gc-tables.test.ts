import { describe, expect, test } from "vitest";
import type { DecisionOf, Explain, Verdict } from "../../api/model/decision.ts";
import type { PlaceReasons } from "../../api/model/forms.ts";
import { NEWEST } from "../../api/profiles/index.ts";
import { colorPaint, plainPaint, widthOf } from "../../api/text/style.ts";
import { answerText } from "../../api/text/tables/index.ts";
import { CONTAINERS, IMAGES, keptImage, NOW, removedImage } from "./gc-decisions.ts";

interface Look {
  readonly columns?: number;
  readonly explain?: Explain;
  readonly reasons?: readonly PlaceReasons[];
  readonly paint?: typeof plainPaint;
  readonly observedAtMs?: number | undefined;
}
function drawn<K extends "image-gc" | "container-gc">(
  kind: K,
  decision: DecisionOf[K],
  verdict: Verdict,
  { columns = Number.POSITIVE_INFINITY, explain = "off", reasons = [], paint = plainPaint, ...look }: Look = {},
): string {
  const decided = { decision, verdict, reasons, needs: [] };
  const observedAtMs = "observedAtMs" in look ? look.observedAtMs : NOW;
  const { policyVersion } = NEWEST;
  return answerText({ kind, node: "n1", policyVersion, decided, explain, observedAtMs }, { columns, paint })
    .split("\n")
    .slice(1)
    .join("\n");
}
const lines = (text: string): readonly string[] => text.split("\n");
const withMany = {
  ...IMAGES,
  keep: [
    ...Array.from({ length: 210 }, (_, i) => keptImage(`web-${i}`, "in-use")),
    keptImage("pause", "pinned"),
    keptImage("pause-2", "pinned"),
    ...Array.from({ length: 10 }, (_, i) => keptImage(`next-${i}`, "not-needed", { place: 3 + i })),
  ],
};

describe("the printed image-gc decision", () => {
  test("shows the usage with both thresholds, the removed images in order, and the kept ones with the next candidate first", () => {
    expect(drawn("image-gc", IMAGES, "removes")).toBe(`REMOVES  2 images, 30 MiB
90 % of 1000 MiB used, high threshold 85 %: 100 MiB wanted, down to the low one of 80 %
██████████████████████████████████████████████████╎×××│×▒▒······
█ used   × wanted, and nothing left to free   ▒ would be freed   · available   ╎ low 80 %   │ high 85 %
would free 30 MiB as the kubelet counts, 15 MiB with shared layers counted once
younger than 2m stays, none is too old

   REMOVED, IN ORDER    SIZE  ITS OWN  LAST USED  FIRST SEEN  WHY
1  localhost/a:1      10 MiB               never      5m ago  for space  tie
2  localhost/b:1      20 MiB    5 MiB  4m10s ago      5m ago  for space
tie: equal in everything that the kubelet sorts by; its order is random, here it is by id

   KEPT                     SIZE  LAST USED  FIRST SEEN  WHY
3  localhost/young:1       5 MiB      never     40s ago  first seen 40s ago, may be removed in 1m20s
4  6e6578742d2d2 for kata  5 MiB      never   3m20s ago  the images removed before it free enough
   localhost/web:1         5 MiB        now   3m20s ago  in use by default/web c (running) and others
   localhost/pause:1       5 MiB      never   3m20s ago  pinned

PULLED AGAIN            SIZE  REMOVED     PULLED  HOW OFTEN
localhost/next:1 (+1)  5 MiB   1h ago  3m20s ago  removed 3 times, pulled again twice
`);
  });

  test("draws the bar to scale: each cell is a 62nd of the file system, with the thresholds between cells", () => {
    const bar = (available: number, freedBytes: number, wantedBytes: number | null) => {
      const fileSystem = { capacityBytes: 6200, availableBytes: available, usagePercent: 0, wantedBytes };
      return lines(drawn("image-gc", { ...IMAGES, fileSystem, freedBytes }, "removes"))[2];
    };
    const used = (n: number) => "█".repeat(n);
    expect(bar(3100, 0, null)).toBe(`${used(31)}${"·".repeat(19)}╎···│·········`);
    expect(bar(600, 600, 600)).toBe(`${used(50)}╎▒▒▒│▒▒▒······`);
    expect(bar(-5, 0, 100)).toBe(`${used(50)}╎${used(3)}│${used(8)}×`);
    expect(bar(0, 99_999, 100)).toBe(`${"▒".repeat(50)}╎▒▒▒│${"▒".repeat(9)}`);
    const at = { ...IMAGES.policy, highThresholdPercent: 100, lowThresholdPercent: 100 };
    expect(lines(drawn("image-gc", { ...IMAGES, policy: at }, "removes"))[2]?.endsWith("·╎│")).toBe(true);
    const zero = { capacityBytes: 0, availableBytes: 0, usagePercent: 0, wantedBytes: null };
    expect(drawn("image-gc", { ...IMAGES, fileSystem: zero }, "fails")).not.toMatch(/[█│]/);
  });

  test("long lists are shortened, and the rest is counted by reason; `--explain full` shows all", () => {
    const text = drawn("image-gc", withMany, "removes");
    expect(lines(text).filter((line) => /not-needed|free enough$/.test(line))).toHaveLength(10);
    expect(text).toContain("\nand 212 more (in use 210, pinned 2)\n");
    const full = drawn("image-gc", withMany, "removes", { explain: "full" });
    expect(full).not.toContain(" more (");
    expect(lines(full).filter((line) => line.includes("localhost/web-"))).toHaveLength(210);
    const remove = Array.from({ length: 40 }, (_, i) => removedImage(i + 1, `old-${i}`));
    expect(drawn("image-gc", { ...IMAGES, remove }, "removes")).toContain("\nand 15 more (for space 15)\n");
  });

  test("reasons are printed below their image, and those of images that are not shown are not printed", () => {
    const at = (image: { readonly id: string }, code: string) => ({ at: image.id, because: [{ code, field: "why" }] });
    const reasons = [at(withMany.remove[0] ?? { id: "" }, "x_first"), at(withMany.keep[209] ?? { id: "" }, "x_hidden")];
    const text = drawn("image-gc", withMany, "removes", { explain: "reasons", reasons });
    expect(text).toMatch(/^1 {2}localhost\/a:1 .*\n {2}why: x_first$/m);
    expect(text).not.toContain("x_hidden");
    expect(drawn("image-gc", withMany, "removes", { explain: "full", reasons })).toContain("x_hidden");
  });

  test("the result of each removal, the kubelet's error and its events are printed once, with the kubelet's messages", () => {
    const remove = [
      removedImage(1, "a", { end: "removed" }),
      removedImage(2, "b", { end: "failed", message: "conflict:\nit is in use" }),
      removedImage(3, "c", { end: "stopped", tie: true }),
    ];
    const events = [
      { type: "Warning" as const, reason: "FreeDiskSpaceFailed", message: "Insufficient \u001b[31mspace" },
    ];
    const text = drawn("image-gc", { ...IMAGES, remove, events, error: "wanted to free 104857600 bytes" }, "fails");
    expect(lines(text)[0]).toBe("FAILS  wanted to free 104857600 bytes");
    const repeated = [...events, { type: "Warning" as const, reason: "ImageGCFailed", message: "wanted it" }];
    expect(drawn("image-gc", { ...IMAGES, events: repeated, error: "wanted it" }, "fails")).toContain(
      "space\nevent ImageGCFailed with this message\n",
    );
    expect(text).toContain("\nevent FreeDiskSpaceFailed: Insufficient ␛[31mspace\n");
    expect(text).toContain("\nfreed 30 MiB as the kubelet counts, ");
    expect(text).toMatch(
      /^1 .* for space {2}removed\n2 .* for space {2}failed\n {2}conflict:␊it is in use\n3 .* stopped, tie$/m,
    );
    const done = { ...IMAGES, remove: remove.slice(0, 1) };
    expect(lines(drawn("image-gc", done, "removes"))[0]).toBe("REMOVED  1 image, 10 MiB");
  });

  test("says why nothing is removed, and what is not known", () => {
    const fileSystem = { capacityBytes: 2 ** 30, availableBytes: 2 ** 29, usagePercent: 50, wantedBytes: null };
    const nothing = { ...IMAGES, remove: [], freedBytes: 0, pulledAgain: [] };
    const calm = drawn("image-gc", { ...nothing, fileSystem }, "keeps");
    expect(calm).toMatch(
      /^KEEPS {2}no image is removed\n50 % of 1 GiB used: below the high threshold of 85 %, no space has to be freed\n/,
    );
    expect(calm).not.toContain("as the kubelet counts");
    const reached = { ...fileSystem, usagePercent: 85, wantedBytes: -5 };
    expect(
      lines(drawn("image-gc", { ...IMAGES, fileSystem: reached, freedOnceBytes: null }, "removes")).slice(1, 5),
    ).toEqual([
      "85 % of 1 GiB used, high threshold 85 %: the low one of 80 % is reached, and still one image is removed",
      expect.stringContaining("╎"),
      expect.stringContaining("low 80 %"),
      "would free 30 MiB as the kubelet counts; shared layers are not known",
    ]);
    const unused = drawn("image-gc", { ...IMAGES, operation: "delete-unused", fileSystem: null }, "removes");
    expect(unused).toContain("\nrequested by the eviction manager: all unused images are removed, however full");
    const off = { ...IMAGES.policy, timer: false, maxAgeMs: 604_800_000 };
    expect(drawn("image-gc", { ...nothing, fileSystem: null, policy: off }, "keeps")).toMatch(
      /\nthe usage of the image file system is not known\nyounger than 2m stays, unused for 7d is too old; the kubelet runs no timer for it /,
    );
  });

  test("without the snapshot's time, points in time are printed instead of ages", () => {
    const text = drawn("image-gc", IMAGES, "removes", { observedAtMs: undefined });
    expect(text).toContain("2026-11-21T06:45:10Z");
    expect(text).toContain("first seen 2026-11-21T06:48:40Z, may be removed at 2026-11-21T06:50:40Z");
    expect(text).not.toMatch(/NaN|undefined/);
  });
});

describe("the printed container-gc decision", () => {
  test("shows what is removed in the order of the pass, and which containers of each pod are kept", () => {
    expect(drawn("container-gc", CONTAINERS, "removes")).toBe(`REMOVES  2 containers, 1 sandbox and 1 log directory
dead containers that may stay: 1 of each container of a pod, any number in all, and those younger than 1m

   REMOVED     OF                   ID                   MADE  STATE      WHY
1  container   default/web app #1   6170702d312d2     10m ago  exited     over the limit per container
2  container   default/web old      6f6c642d302d2   8m20s ago  unknown    its pod is gone               killed first
3  sandbox     default/web          2d302d2d2d2d2  11m40s ago  not ready  an older sandbox
4  pod's logs  default_gone_u-gone                                        its pod is gone

KEPT       OF                  COUNT     MADE  WHY
container  default/web side        2  20s ago  too young, may be removed in 10s
container  default/web app #2          2m ago  dead, within the limits
container  default/web app #3          1m ago  running
`);
  });

  test("says which operation was requested, and that not all pods are known", () => {
    const decision = { ...CONTAINERS, operation: "delete-unused", allSourcesReady: false, remove: [] } as const;
    const policy = { minAgeMs: 0, maxPerPodContainer: -1, maxContainers: 100 };
    expect(lines(drawn("container-gc", { ...decision, policy }, "keeps")).slice(0, 4)).toEqual([
      "KEEPS  nothing is removed",
      "requested by the eviction manager: everything that ended pods left is removed, however little",
      "not all sources of pods have reported: nothing of an unknown pod is removed",
      "dead containers that may stay: any number of each container of a pod, 100 in all; none of pods that have ended",
    ]);
    const failed = { ...CONTAINERS, error: "rpc error: code = Unavailable" };
    expect(lines(drawn("container-gc", failed, "fails"))[0]).toBe("FAILS  rpc error: code = Unavailable");
  });

  test("counts the containers that a shortened list does not show", () => {
    const [running] = CONTAINERS.keep;
    if (running === undefined) throw new Error("no container");
    const keep = Array.from({ length: 30 }, (_, i) => ({ ...running, id: `${i}`, name: `c${i}` }));
    expect(drawn("container-gc", { ...CONTAINERS, keep }, "removes")).toContain("\nand 20 more (running 20)\n");
  });
});

describe.each([200, 120, 80, 60])("in %d columns", (columns) => {
  test("no line is wider, with or without colours", () => {
    for (const paint of [plainPaint, colorPaint]) {
      const images = lines(drawn("image-gc", withMany, "removes", { columns, paint }));
      const containers = lines(drawn("container-gc", CONTAINERS, "removes", { columns, paint }));
      const rows = [...images, ...containers].filter((line) =>
        /[█╎]|^ *\d+ {2}|KEPT|REMOVED|^container|^localhost/.test(line),
      );
      expect(rows.length).toBeGreaterThan(20);
      expect(Math.max(...rows.filter((line) => !line.includes("low 80 %")).map(widthOf))).toBeLessThanOrEqual(columns);
    }
  });
});
