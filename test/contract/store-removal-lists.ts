import { expect, test } from "vitest";
import type { RemovalFilter } from "../../db/rows.ts";
import type { Store } from "../../db/store.ts";
import {
  cameBack,
  containerPass,
  containerRemoval,
  idsOf,
  imageRemoval,
  MINUTE,
  pass,
  recordPass,
  rowsOf,
} from "./removal-rows.ts";
import { fresh, T0, value } from "./store-rows.ts";

export function removalLists(of: () => Store): void {
  test("each filter keeps the rows that it names, and a search reads ids, names, pods and containers literally", async () => {
    const node = fresh("node");
    await recordPass(of(), node, pass(T0, [imageRemoval("sha256:Ab%1", { names: ["docker.io/Library/my_app:1"] })]));
    await recordPass(
      of(),
      node,
      pass(T0 + 10, [imageRemoval("sha256:ab21", { names: ["quay.io/myxapp:1", '","'], end: "failed" })]),
    );
    await recordPass(
      of(),
      node,
      containerPass(T0 + 20, [containerRemoval("c1"), containerRemoval("s1", { target: "sandbox", container: null })]),
    );
    const ids = (filter: Partial<RemovalFilter>) => idsOf(of(), { node, ...filter });
    expect(await ids({ kind: "image-gc" })).toEqual(["sha256:ab21", "sha256:Ab%1"]);
    expect(await ids({ target: "sandbox" })).toEqual(["s1"]);
    expect(await ids({ end: "failed" })).toEqual(["sha256:ab21"]);
    expect(await ids({ sinceMs: T0 + 10, untilMs: T0 + 20 })).toEqual(["sha256:ab21"]);
    const found: Record<string, string[]> = {
      MY_APP: ["sha256:Ab%1"],
      "%1": ["sha256:Ab%1"],
      "%": ["sha256:Ab%1"],
      "SHA256:AB": ["sha256:ab21", "sha256:Ab%1"],
      '","': ["sha256:ab21"],
      "shop/web-": ["s1", "c1"],
      server: ["c1"],
      "\\": [],
      "'": [],
    };
    for (const [search, expected] of Object.entries(found)) expect(await ids({ search }), search).toEqual(expected);
    const digest = "f".repeat(64);
    await recordPass(of(), node, pass(T0 + 30, [imageRemoval(`sha256:${digest}`)]));
    expect(await ids({ search: digest })).toEqual([`sha256:${digest}`]);
  });

  test("pages contain a large pass once, newest first, and an invalid token is refused", async () => {
    const node = fresh("node");
    const list = Array.from({ length: 23 }, (_, i) => imageRemoval(`i-${i}`));
    await recordPass(of(), node, pass(T0, list.slice(0, 18)));
    await recordPass(of(), node, pass(T0 + 1, list.slice(18)));
    const seen: string[] = [];
    const sizes: number[] = [];
    for (let pageToken: string | null | undefined; pageToken !== null; ) {
      const page = value(
        await of().listRemovals({ node, limit: 6, ...(pageToken === undefined ? {} : { pageToken }) }),
      );
      seen.push(...page.items.map(({ id }) => id));
      sizes.push(page.items.length);
      pageToken = page.nextPageToken;
    }
    expect(sizes).toEqual([6, 6, 6, 5]);
    expect(seen).toEqual(list.map(({ id }) => id).reverse());
    const bad = await of().listRemovals({ node, limit: 6, pageToken: "MTIz" });
    expect(bad).toMatchObject({ ok: false, error: { code: "bad_page_token" } });
  });
}

export function manyRemovals(of: () => Store): void {
  test("thousands of removals with long texts are recorded at once", async () => {
    const node = fresh("node");
    const list = Array.from({ length: 4000 }, (_, i) =>
      imageRemoval(`sha256:${i}`, {
        names: [`${"é".repeat(300)}-${i}`],
        message: i % 3 === 0 ? "\u0001".repeat(200) : null,
      }),
    );
    const longest = imageRemoval("longest", {
      names: Array.from({ length: 32 }, (_, i) => "\u65e5".repeat(4095) + (i % 10)),
    });
    await recordPass(of(), node, pass(T0, [...list, longest], { returns: list.map(({ id }) => cameBack(id, T0)) }));
    const { totals } = value(await of().summarizeRemovals(node, {}));
    expect(totals).toMatchObject({ removed: 4001, pulledAgain: 0 });
    expect((await rowsOf(of(), { node, limit: 1 }))[0]).toMatchObject(longest);
    await recordPass(of(), node, pass(T0 + MINUTE, [], { returns: list.map(({ id }) => cameBack(id, T0 + MINUTE)) }));
    expect(value(await of().summarizeRemovals(node, {})).totals.pulledAgain).toBe(4000);
  });
}
