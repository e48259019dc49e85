import { gzipSync } from "node:zlib";
import { beforeAll, describe, expect, test } from "vitest";
import { diskSnapshot, manyImages } from "../contract/gc-snapshots.ts";
import { resultRow, value } from "../contract/store-rows.ts";
import { DEVICES, GPU, HOLDERS, IMAGES, largeNode, PODS } from "./large-node.ts";
import { capturedSnapshot, partOf, readable, type Subject, subject } from "./node-subject.ts";

const WIRE = 150_000;
const BURSTABLE = "/kubepods.slice/kubepods-burstable.slice";

/** All pages of a list, found by following its links. */
async function pagesOf({ show }: Subject, path: string): Promise<readonly string[]> {
  const pages: string[] = [];
  for (let next: string | undefined = path; next !== undefined; ) {
    const { html, status } = await show(next);
    expect(status, next).toBe(200);
    expect(gzipSync(html).length, next).toBeLessThan(WIRE);
    pages.push(html);
    next = /<a rel="next" href="([^"]*)"/.exec(html)?.[1]?.replaceAll("&amp;", "&");
  }
  return pages;
}
const found = (pages: readonly string[], pattern: RegExp): readonly string[] =>
  pages.flatMap((html) => [...html.matchAll(pattern)].map(([, name = ""]) => name));

describe("the page of the largest possible node", () => {
  const large = subject();
  let html = "";
  beforeAll(async () => {
    await large.decide("image-gc", { snapshot: largeNode("big") });
    await large.decide("eviction", { snapshot: largeNode("big", 3600) });
    html = (await large.show("/nodes/big")).html;
  });
  const linkTo = (list: string, of = ""): string => {
    const links = [...html.matchAll(/<p class="small rest">([\d,]+) of ([\d,]+) shown · <a href="([^"]*)">all<\/a>/g)];
    const own = links.find(([, , , href = ""]) => {
      const query = new URL(href.replaceAll("&amp;", "&"), "http://x").searchParams;
      return query.get("list") === list && (of === "" || query.get("of") === of);
    });
    if (own === undefined) throw new Error(`no link to all of ${list}`);
    return (own[3] ?? "").replaceAll("&amp;", "&");
  };
  const shownOf = (id: string): readonly string[] =>
    [...partOf(html, id).matchAll(/([\d,]+ of [\d,]+) shown · /g)].map(([, text = ""]) => text);

  test("has less than 150 KB, and says how much of each list is shown", () => {
    expect(gzipSync(html).length).toBeLessThan(WIRE);
    expect(shownOf("images")).toEqual([`30 of ${IMAGES.toLocaleString("en")}`]);
    expect(shownOf("devices")).toEqual([`512 of ${DEVICES.toLocaleString("en")}`, `100 of ${HOLDERS}`]);
    expect(shownOf("cpus")).toEqual([`100 of ${HOLDERS}`]);
    expect(shownOf("memory")).toEqual([`100 of ${HOLDERS}`]);
    expect(shownOf("eviction")).toEqual([`5 of ${PODS}`, `5 of ${PODS}`]);
    expect(shownOf("cgroups")).toEqual([`128 of ${PODS - HOLDERS}`, `128 of ${HOLDERS + 2}`]);
  });

  test.each([
    ["images", "", /<td class="image">([^<]*)/g, IMAGES],
    ["cpus", "", /<td>(shop\/pod-\d+)<\/td>/g, HOLDERS],
    ["memory", "", /<td>(shop\/pod-\d+)<\/td>/g, HOLDERS],
    ["devices", "", /<td>(gpu-\d+)[^<]*<\/td>/g, HOLDERS],
    ["device-map", GPU, /<title>(gpu-\d+):/g, DEVICES],
    ["ranking", "memory.available", /<td>(shop\/pod-\d+)/g, PODS],
    ["ranking", "nodefs.available", /<td>(shop\/pod-\d+)/g, PODS],
    ["cgroups", BURSTABLE, /<span class="name">(shop\/pod-\d+)/g, PODS - HOLDERS],
  ] as const)("has pages of %s %s with each row once", async (list, of, row, count) => {
    const rows = found(await pagesOf(large, linkTo(list, of)), row);
    expect(new Set(rows).size).toBe(count);
    expect(rows).toHaveLength(count);
  });

  test("has rankings beyond the recorded ones, in the order of places", async () => {
    const pages = await pagesOf(large, linkTo("ranking", "memory.available"));
    const places = found(pages, /<tr><td class="num soft">(\d+)<\/td>/g).map(Number);
    expect(places).toEqual(Array.from({ length: PODS }, (_, i) => i + 1));
  });

  test("gives every non-critical pod a place in the table of pods, also beyond the recorded ones", async () => {
    const pages = await pagesOf(large, linkTo("pods", ""));
    const places = found(pages, /data-name="Eviction order">(\d+|–)</g).map(Number);
    expect(places).toEqual(Array.from({ length: PODS }, (_, i) => i + 1));
  });

  test("has list pages with their position, and links to the neighbouring pages and the node", async () => {
    const { html: second, text } = await large.show("/nodes/big?list=images&page=2");
    expect(text("images")).toContain("← before 201 to 400 of 1,000 next →");
    expect(second).toContain('<a href="/nodes/big#images">big</a>');
    expect(second).toContain('<a rel="prev" href="/nodes/big?list=images">');
    const beyond = await large.show("/nodes/big?list=images&page=99");
    expect(beyond.text("images")).toContain("← before 801 to 1,000 of 1,000");
    expect(beyond.html).not.toContain('rel="next"');
  });

  test.each([
    ["list=nothing", "list: must be one of pods, cgroups, "],
    ["list=images&page=0", "page: must be a number from 1 to 99999"],
    ["list=images&page=x", "page: must be a number"],
    ["page=2", "page: is allowed only with list"],
    [`list=ranking&of=${"x".repeat(5000)}`, "of: has more than 4096 characters"],
    ["list=images&list=cpus", "list: given more than once"],
  ])("refuses %s with what is allowed", async (query, words) => {
    const { html: page, status } = await large.show(`/nodes/big?${query}`);
    expect(status).toBe(400);
    expect(readable(page)).toContain(words);
  });

  test("gives 404 for a list that the node does not have, and shows the query as text", async () => {
    const evil = "<img src=x>";
    const { html: page, status } = await large.show(`/nodes/big?list=ranking&of=${encodeURIComponent(evil)}`);
    expect(status).toBe(404);
    expect(page).not.toContain(evil);
    expect(readable(page)).toContain(`node big has no list ranking of ${evil} now`);
  });
});

test("reported cgroups beyond the newest snapshot have pages too", async () => {
  const own = subject();
  const { id } = await own.decide("cgroups", { snapshot: capturedSnapshot() });
  const steps = Array.from({ length: 250 }, (_, i) => ({
    op: "rmdir",
    path: `/kubepods/gone-${i}`,
    status: "planned",
  }));
  const body = JSON.stringify({ at: "2026-11-21T06:25:00Z", dryRun: true, complete: true, steps });
  value(await own.store.addResults(id, [{ ...resultRow({ atMs: Date.now() }), body }]));
  expect((await own.show("/nodes/n1")).text("cgroups-others")).toContain("40 of 250 shown · all");
  const rows = found(await pagesOf(own, "/nodes/n1?list=cgroups-others"), /scope="rowgroup">(\/kubepods\/gone-\d+)/g);
  expect(new Set(rows).size).toBe(250);
});

test("CPUs beyond one map, and resources of many plugins, have further pages", async () => {
  const own = subject();
  const cpus = Array.from({ length: 1500 }, (_, cpu) => ({ cpu, core: cpu, numa: 0, socket: 0 }));
  const resources = Array.from({ length: 60 }, (_, i) => `example.com/r${i}`);
  const devices = resources.flatMap((resource) =>
    Array.from({ length: 100 }, (_, i) => ({ resource, id: `d${i}`, health: "Healthy", numaNodes: [0] })),
  );
  const { machine: _, ...rest } = capturedSnapshot() as { machine?: unknown };
  const snapshot = {
    ...rest,
    machine: { cpus, numaNodes: [{ id: 0 }] },
    kubeletConfiguration: {},
    assignments: {},
    devices,
    devicePlugins: resources.map((resource) => ({ resource })),
  };
  await own.decide("cgroups", { snapshot });
  const { html, text } = await own.show("/nodes/n1");
  expect(gzipSync(html).length).toBeLessThan(WIRE);
  expect(text("cpus")).toContain("1,024 of 1,500 shown · all");
  const drawn = found(await pagesOf(own, "/nodes/n1?list=cpu-map"), /<title>CPU (\d+),/g);
  expect(new Set(drawn).size).toBe(1500);
  expect(text("devices")).toContain("24 of 60 shown · all");
  const cards = found(await pagesOf(own, "/nodes/n1?list=resources"), /<h3>(example\.com\/r\d+)/g);
  expect(new Set(cards).size).toBe(60);
  // each card has fewer cells, which keeps the page small
  expect(text("devices")).toContain("64 of 100 shown · all");
});

test("a ranking without its snapshot shows the recorded places, and says that these are all", async () => {
  const first = subject();
  const gone = subject({ store: { ...first.store, getSnapshot: async () => ({ ok: true, value: null }) } });
  await gone.decide("eviction", { snapshot: largeNode("big") });
  const { text, status } = await gone.show("/nodes/big?list=ranking&of=memory.available");
  expect(status).toBe(200);
  expect(text("eviction")).toMatch(
    /The snapshot of this pass is no longer stored: of 512 pods the first \d+ are recorded/,
  );
  const pods = await gone.show("/nodes/big?list=pods");
  expect(pods.text("pods")).toMatch(
    /in that order \(the first 20 of 512 are recorded of that pass, and its snapshot is no/,
  );
});

test("pages of images go from the removed to the kept ones, with the line between them", async () => {
  const own = subject();
  const images = manyImages(500);
  // the first pass detects the images; an hour later the disk is full
  await own.decide("image-gc", { snapshot: diskSnapshot("node", 0, images, 500) });
  await own.decide("image-gc", { snapshot: diskSnapshot("node", 3600, images, 20) });
  const pages = await pagesOf(own, "/nodes/node?list=images");
  const rows = found(pages, /<td class="image">([^<]*)/g);
  expect(rows).toHaveLength(502);
  expect(new Set(rows).size).toBe(502);
  const lines = pages.map((html) => html.match(/<tr class="line"><td colspan="7">([^<]*)/)?.[1]);
  expect(lines[0]).toMatch(/^What is above would be removed \(.* for space\), what is below is kept$/);
  expect(lines.slice(1)).toEqual(["What is below is kept", "What is below is kept"]);
  expect((await own.show("/nodes/node")).text("images")).toMatch(/\d+ others would be removed What is above/);
});
