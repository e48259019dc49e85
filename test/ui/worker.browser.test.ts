import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { nodeAssets } from "../../api/server/assets.ts";
import { capturedNode } from "../kit/real-node.ts";
import { scratchFolder } from "../kit/scratch.ts";
import { expectAccessible, expectToFit, hasBrowser, openPage } from "./browser.ts";
import { type Dev, workerDev, wrangler } from "./worker-dev.ts";

/** Time for wrangler to build and start, several times in a row. */
const PATIENT = { timeout: 240_000 };

test("the deployed bundle contains the pages' scripts and styles as in the source", PATIENT, () => {
  const folder = scratchFolder();
  wrangler(["deploy", "--dry-run", "--outdir", folder]);
  const built = readdirSync(folder);
  for (const room of ["client", "style"]) {
    const source = join(import.meta.dirname, "../../api/ui", room);
    for (const name of readdirSync(source)) {
      // the file's name is the digest of its content, then the original name
      const [file = ""] = built.filter((one) => /^[0-9a-f]+-/.test(one) && one.replace(/^[0-9a-f]+-/, "") === name);
      expect(readFileSync(join(folder, file), "utf8"), name).toBe(readFileSync(join(source, name), "utf8"));
    }
  }
});

describe("wrangler dev", () => {
  let dev: Dev;
  let session = "";
  beforeAll(async () => {
    dev = await workerDev();
    const body = new URLSearchParams({ token: dev.token, to: "/" });
    const signed = await fetch(`${dev.url}/sign-in`, { method: "POST", body, redirect: "manual" });
    session = /^nodewise=([^;]+)/.exec(signed.headers.get("set-cookie") ?? "")?.[1] ?? "";
    await decide("cgroups", "n1");
    await decide("eviction", "n1");
  }, PATIENT.timeout);
  afterAll(() => dev?.close());

  async function decide(kind: string, name: string): Promise<string> {
    const response = await fetch(`${dev.url}/v1/decisions/${kind}`, {
      method: "POST",
      headers: { "content-type": "application/json", authorization: `Bearer ${dev.token}` },
      body: JSON.stringify({ snapshot: capturedNode(name) }),
    });
    if (!response.ok) throw new Error(await response.text());
    return ((await response.json()) as { id: string }).id;
  }
  /** The cookies of a browser that has signed in with the form. */
  const credentials = () => ({
    storageState: {
      origins: [],
      cookies: [
        {
          name: "nodewise",
          value: session,
          domain: new URL(dev.url).hostname,
          path: "/",
          expires: -1,
          httpOnly: true,
          secure: false,
          sameSite: "Strict" as const,
        },
      ],
    },
  });

  test("truncated gzip leaves no uncaught exception in the log", async () => {
    const body = gzipSync("{}").subarray(0, -4);
    for (const [path, type] of [
      ["/v1/lint", "application/json"],
      ["/v1/batch", "application/x-ndjson"],
    ] as const) {
      const headers = { authorization: `Bearer ${dev.token}`, "content-type": type, "content-encoding": "gzip" };
      const response = await fetch(dev.url + path, { method: "POST", headers, body });
      expect(await response.text()).toContain('"malformed_body"');
    }
    // uncaught errors have been logged by then
    await fetch(`${dev.url}/healthz`);
    await expect.poll(() => dev.said()).toContain("GET /healthz");
    expect(dev.said()).not.toContain("Uncaught");
  });

  test.skipIf(!hasBrowser)("each page loads, fits and is accessible", async () => {
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
      const { page, faults, close } = await openPage(dev.url + path, credentials());
      await expectToFit(page);
      await expectAccessible(page);
      expect(faults, path).toEqual([]);
      await close();
    }
  });

  test("the assets have the same text as on Node, with a single style sheet", async () => {
    const assets = nodeAssets();
    for (const [name, text] of Object.entries(assets)) {
      const response = await fetch(`${dev.url}/assets/${name}`);
      expect(await response.text(), name).toBe(text);
    }
  });

  test.skipIf(!hasBrowser)("the page polls for news, since no response stays open", async () => {
    const { page, close } = await openPage(dev.url, credentials());
    await page.locator("#live-state", { hasText: "asks every 5 s" }).waitFor();
    await decide("cgroups", "node-new");
    await page.locator("#nodes", { hasText: "node-new" }).waitFor();
    await close();
  });
});
