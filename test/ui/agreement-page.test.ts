import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { epochMs } from "../../api/model/units.ts";
import { kindPicture } from "../../api/ui/agreement-page.ts";
import { appOver } from "../api/serving.ts";
import { outcomeRow } from "../contract/store-outcomes.ts";
import { value } from "../contract/store-rows.ts";
import { captured } from "../kit/real-node.ts";

const JSON_HEADERS = { "content-type": "application/json" };
const HOUR = 3_600_000;
const T = Date.parse("2026-11-21T06:00:00Z");

describe("the chart of a kind of outcome", () => {
  const kind = { kind: "eviction", agrees: 6, differs: 1, notComparable: 3, share: 6 / 7 };
  const row = (hours: number, verdict: string, count: number, of = "eviction") => ({
    fromMs: T + hours * HOUR,
    kind: of,
    verdict,
    count,
  });
  test("has a column per time span, with parts by their shares", async () => {
    const tally = [
      row(0, "agrees", 2),
      row(2, "agrees", 4),
      row(2, "differs", 1),
      row(2, "not-comparable", 3),
      row(1, "agrees", 9, "admission"),
    ];
    const pieces = { sinceMs: T + 5, untilMs: T + 3 * HOUR, pieceMs: HOUR };
    const text = String(await kindPicture(kind, tally, pieces, "/agreement?kind=eviction"));
    expect(text).toContain("85.7 %");
    expect(text).toContain('aria-label="eviction: 6 agree, 1 differ, 3 not comparable"');
    const shares = text.slice(text.indexOf('class="shares"'));
    expect([...shares.matchAll(/<title>(.*?)<\/title>/g)].map(([, title]) => title)).toEqual([
      "2026-11-21 06:00:00 UTC: 2 agree",
      "2026-11-21 08:00:00 UTC: 4 agree, 1 differ, 3 not comparable",
    ]);
    const rects = [
      ...shares.matchAll(/<rect class="(\w+)" x="([\d.]+)" y="([\d.]+)" width="[\d.]+" height="([\d.]+)"/g),
    ];
    expect(rects.map(([, tone, x, y, height]) => [tone, x, y, height])).toEqual([
      ["good", "0.0", "0.0", "100.0"],
      ["good", "500.0", "50.0", "50.0"],
      ["bad", "500.0", "37.5", "12.5"],
      ["rest", "500.0", "0.0", "37.5"],
    ]);
  });
  test("states that none could be compared, without a share", async () => {
    const none = { ...kind, agrees: 0, differs: 0, share: null };
    const text = String(await kindPicture(none, [], { sinceMs: T, untilMs: T, pieceMs: HOUR }, "/"));
    expect(text).toContain("none could be compared");
    expect(text).not.toContain("%");
  });
});

describe("the agreement page", () => {
  async function filled(now = T + 2 * HOUR) {
    const made = appOver({ now: () => epochMs(now) });
    const snapshot = captured("snapshot.json");
    const pods = snapshot.pods
      .slice(1)
      .filter((pod: { metadata: { name: string } }) => pod.metadata.name !== "guar-frac");
    for (const body of [
      { ...snapshot, observedAt: "2026-11-21T06:26:20Z" },
      { ...snapshot, observedAt: "2026-11-21T06:26:45Z", pods },
    ]) {
      await made.app.request("/v1/nodes/n1/snapshot", {
        method: "PUT",
        headers: JSON_HEADERS,
        body: JSON.stringify(body),
      });
    }
    const body = readFileSync(new URL("../data/real-outcomes/report.json", import.meta.url), "utf8");
    const posted = await made.app.request("/v1/nodes/n1/outcomes", { method: "POST", headers: JSON_HEADERS, body });
    expect(posted.status).toBe(201);
    const page = async (query = "") => {
      const response = await made.app.request(`/agreement${query}`, { headers: { accept: "text/html" } });
      return { status: response.status, text: await response.text() };
    };
    return { ...made, page };
  }

  test("shows differences with both sides, the differing field and the snapshot compared", async () => {
    const { page } = await filled();
    const { text, status } = await page();
    expect(status).toBe(200);
    expect(text).toContain("72.2 %");
    expect(text.match(/<article /g)).toHaveLength(5);
    expect(text).toContain("<strong>used</strong>: the kubelet 1800, Nodewise 1600");
    expect(text).toMatch(/<tr class="changed"><td>used<\/td><td>1800<\/td><td>1600<\/td><\/tr>/);
    expect(text).toMatch(/href="\/v1\/snapshots\/[0-9a-f]{32}"/);
    expect(text).toMatch(/href="\/what-if\?snapshot=[0-9a-f]{32}"/);
    expect(text).toContain('href="/agreement?kind=admission"');
  });
  test("filters by the URL's query", async () => {
    const { page, store } = await filled();
    const agreeing = (await page("?verdict=agrees&kind=admission&node=n1")).text;
    expect(agreeing.match(/<article /g)).toHaveLength(13);
    expect((await page("?kind=eviction")).text).toContain("No outcome of a kubelet was reported in this time.");
    expect((await page("?node=other")).text).not.toContain("<article ");
    const rows = Array.from({ length: 25 }, () => outcomeRow({ node: "n2", verdict: "differs", atMs: T }));
    value(await store.putOutcomes(rows));
    const first = (await page("?node=n2")).text;
    expect(first.match(/<article /g)).toHaveLength(20);
    expect(first).toContain("Another version recorded it.");
    const [, older = ""] = /<a rel="next" href="([^"]+)"/.exec(first) ?? [];
    const second = (await page(older.replace("/agreement", "").replaceAll("&amp;", "&"))).text;
    expect(second.match(/<article /g)).toHaveLength(5);
    expect(second).not.toContain('rel="next"');
  });
  test("refuses an invalid query with 400", async () => {
    const { page } = await filled();
    for (const query of ["?days=2", "?kind=cpus", "?verdict=maybe", "?pageToken=nonsense", "?color=red"]) {
      expect((await page(query)).status, query).toBe(400);
    }
  });
  test("says how to record outcomes when there are none", async () => {
    const { app } = appOver();
    const text = await (await app.request("/agreement")).text();
    expect(text).toContain("No outcome of a kubelet was reported in this time.");
    expect(text).toContain("nodewise collect");
  });
});
