import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { aBrowser, expectAccessible, expectToFit, hasBrowser } from "./browser.ts";
import { snapshotOf } from "./served.ts";
import { type Dev, workerDev, wrangler } from "./worker-dev.ts";

test("the bundle that is deployed holds what pages load as it is in the source", () => {
  const folder = mkdtempSync(join(tmpdir(), "nodewise-bundle-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  wrangler(["deploy", "--dry-run", "--outdir", folder]);
  const client = join(import.meta.dirname, "../../api/ui/client");
  const built = readdirSync(folder);
  for (const name of readdirSync(client)) {
    const [file = ""] = built.filter((one) => one.endsWith(`-${name}`));
    expect(readFileSync(join(folder, file), "utf8"), name).toBe(readFileSync(join(client, name), "utf8"));
  }
});

describe.skipIf(!hasBrowser)("the pages of workerd in a browser", () => {
  const browser = aBrowser();
  let dev: Dev;
  beforeAll(async () => {
    dev = await workerDev();
    await decide("cgroups", "n1");
    await decide("eviction", "n1");
  });
  afterAll(() => dev?.close());

  async function decide(kind: string, name: string): Promise<string> {
    const response = await fetch(`${dev.url}/v1/decisions/${kind}`, {
      method: "POST",
      headers: { "content-type": "application/json", authorization: `Bearer ${dev.token}` },
      body: JSON.stringify({ snapshot: snapshotOf(name) }),
    });
    if (!response.ok) throw new Error(await response.text());
    return ((await response.json()) as { id: string }).id;
  }
  const credentials = () => ({ httpCredentials: { username: "anyone", password: dev.token } });

  test("each page is there, fits, and can be used by everybody", async () => {
    const id = await decide("allocatable", "n1");
    for (const path of [
      "/",
      "/nodes/n1",
      "/nodes/n1/decisions",
      `/decisions/${id}`,
      "/what-if?node=n1",
      "/replay",
      "/lint?node=n1",
    ]) {
      const { page, faults, close } = await browser.open(dev.url + path, credentials());
      await expectToFit(page);
      await expectAccessible(page);
      expect(faults, path).toEqual([]);
      await close();
    }
  });

  test("news come by asking, as no response stays open there", async () => {
    const { page, close } = await browser.open(dev.url, credentials());
    await page.locator("#live-state", { hasText: "asks every 5 s" }).waitFor();
    await decide("cgroups", "node-new");
    await page.locator("#nodes", { hasText: "node-new" }).waitFor({ timeout: 60_000 });
    await close();
  });
});
