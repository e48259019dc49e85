import type { Page } from "playwright-core";
import { expect, test } from "vitest";
import { historyFile } from "../../db/open/node.ts";
import { openNode } from "../../db/sqlite/node/open.ts";
import { T0, value } from "../contract/store-rows.ts";
import { capturedNode } from "../kit/real-node.ts";
import { expectAccessible } from "./browser.ts";
import { type BrowserFixture, expectReadable, inBrowser, LOOKS } from "./in-browser.ts";
import { decided } from "./served.ts";

const MANY = 2500;
const PATCH = "kubeReserved:\n  cpu: 1500m\n";

let id = "";
const fill = async (url: string, dataDir: string): Promise<void> => {
  id = (await decided(url, "allocatable", { snapshot: capturedNode("n1") })).id;
  const store = value(openNode({ file: historyFile(dataDir) }));
  const row = value(await store.getDecision(id));
  if (row === null) throw new Error("not recorded");
  for (let i = 1; i < MANY; i++)
    value(await store.record({ decision: { ...row, id: `copy-${i}`, decidedAtMs: T0 + i } }));
  await store.close();
};
const tests = (ground: BrowserFixture): void => {
  const ask = async (page: Page, { since = "" } = {}): Promise<void> => {
    await page.getByLabel("The configuration to decide with").fill(PATCH);
    await page.getByLabel("Since").fill(since);
    await page.getByRole("button", { name: "Replay", exact: true }).click();
  };
  const state = (page: Page, words: string): Promise<void> => page.locator("#run-state", { hasText: words }).waitFor();
  const all = `${MANY.toLocaleString("en")} of ${MANY.toLocaleString("en")} decisions would have been different.`;

  test.each(LOOKS)("%s: form and answer fit, are accessible, and load nothing foreign", async (_name, options) => {
    await ground.visit("/replay", options, async (page) => {
      expect(await page.title()).toBe("Replay · Nodewise");
      await expectReadable(page);
      await ask(page);
      await state(page, "done");
      expect(await page.locator("#answer strong").first().textContent()).toBe(all);
      await expectReadable(page);
    });
  });

  test("without scripts one press replays what fits into a few seconds, and a button the rest", async () => {
    const { page, faults, close } = await ground.open("/replay", { javaScriptEnabled: false });
    await ask(page);
    const goOn = page.getByRole("button", { name: "Go on" });
    expect(Number(await page.locator("[data-passed]").getAttribute("data-passed"))).toBeGreaterThan(1000);
    while ((await goOn.count()) > 0) await goOn.click();
    expect(await page.locator("#answer").textContent()).toContain(all);
    expect(await page.locator("progress").getAttribute("value")).toBe("100");
    expect(faults).toEqual([]);
    await close();
  });

  test("the progress bar moves, can be stopped and continued, and the page does not grow", async () => {
    const { page, faults, close } = await ground.open("/replay");
    const seen: number[] = [];
    let posts = 0;
    let release: () => void = () => {};
    const released = new Promise<void>((resolve) => {
      release = resolve;
    });
    await page.route("**/replay", async (route) => {
      if (route.request().method() !== "POST") return route.continue();
      if (++posts === 2) await released;
      // the page has aborted this request meanwhile
      await route.continue().catch(() => {});
    });
    await ask(page);
    const bar = page.locator("#answer progress");
    await bar.waitFor();
    seen.push(Number(await bar.getAttribute("value")));
    await state(page, "replaying");
    await expect.poll(() => posts).toBe(2);
    expect(await page.getByRole("button", { name: "Go on" }).isVisible()).toBe(false);
    const before = await page.locator("[data-passed]").getAttribute("data-passed");
    await page.getByRole("button", { name: "Stop" }).click();
    await state(page, "stopped");
    release();
    expect(await page.evaluate("document.activeElement.textContent")).toBe("Go on");
    expect(await page.locator("[data-passed]").getAttribute("data-passed")).toBe(before);
    expect(await page.locator("#answer").textContent()).toContain("so far");
    await expectAccessible(page);
    await page.getByRole("button", { name: "Go on" }).click();
    await state(page, "done");
    seen.push(Number(await bar.getAttribute("value")));
    expect(seen[0]).toBeLessThan(100);
    expect(seen[1]).toBe(100);
    expect(await page.locator("#answer").textContent()).toContain(all);
    expect(await page.locator("#answer tr.what").count()).toBe(100);
    expect(faults).toEqual([]);
    await close();
  });

  test("a failed request is repeated, and nothing is counted twice", async () => {
    const { page, close } = await ground.open("/replay");
    let posts = 0;
    const [first, second] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    // the former result remains until the next response
    await page.route("**/replay", async (route) => {
      posts++;
      if (posts === 2) return route.abort();
      if (posts === 3) {
        await first.promise;
        return route.fulfill({ status: 503, body: "busy" });
      }
      if (posts === 4) await second.promise;
      return route.continue();
    });
    await ask(page);
    await state(page, "the server cannot be reached; it is tried again");
    first.resolve();
    await state(page, "the server answered 503; it is tried again");
    second.resolve();
    await state(page, "done");
    expect(await page.locator("#answer").textContent()).toContain(all);
    await close();
  });

  test("invalid input is reported at its place without leaving the page, and the input stays", async () => {
    const { page, close } = await ground.open("/replay");
    await ask(page, { since: "yesterday" });
    await page.locator("#since-fault").waitFor();
    expect(await page.evaluate("document.activeElement.id")).toBe("since");
    expect(await page.getByLabel("The configuration to decide with").inputValue()).toBe(PATCH);
    await expectAccessible(page);
    await page.getByLabel("Since").fill("");
    await page.keyboard.press("Enter");
    await state(page, "done");
    await close();
  });

  test("input larger than a form may be is reported at its field at once, and not sent", async () => {
    const { page, close } = await ground.open("/replay");
    const posted: string[] = [];
    page.on("request", (request) => {
      if (request.method() === "POST") posted.push(request.url());
    });
    const choose = (): Promise<unknown> =>
      page.evaluate(`(() => {
        const data = new DataTransfer();
        data.items.add(new File([" ".repeat(50 * 1024 * 1024)], "big.yaml"));
        document.querySelector("[data-drop]").dispatchEvent(new DragEvent("drop", { dataTransfer: data, bubbles: true, cancelable: true }));
      })()`);
    const words = "big.yaml has 50.0 MiB, and a form may have 8: give the KubeletConfiguration alone";
    const fault = page.getByRole("alert").filter({ hasText: words });
    const input = page.locator("#change-file");
    await choose();
    await fault.waitFor();
    expect(await input.getAttribute("aria-describedby")).toBe(await fault.getAttribute("id"));
    const button = page.getByRole("button", { name: "Replay", exact: true });
    await button.click();
    await page.locator("#change-file:focus").waitFor();
    expect(posted).toEqual([]);
    expect(await page.locator("#run").isVisible()).toBe(false);
    await expectAccessible(page);
    await input.setInputFiles([]);
    await fault.waitFor({ state: "hidden" });
    // the form in a response with faults is checked in the browser as well
    await ask(page, { since: "yesterday" });
    await page.locator("#since-fault").waitFor();
    const before = posted.length;
    await page.evaluate(`document.getElementById("change").value = "é".repeat(5 * 1024 * 1024)`);
    await button.click();
    await page.getByRole("alert").filter({ hasText: "the text has 10.0 MiB" }).waitFor();
    expect(posted).toHaveLength(before);
    await close();
  });

  test("the URL becomes the question's and brings it back, unless it is too long", async () => {
    const { page, faults, close } = await ground.open("/replay?kind=cgroups");
    await page.getByLabel("Kind").selectOption("allocatable");
    await ask(page);
    await state(page, "done");
    await expect.poll(() => new URL(page.url()).searchParams.get("change")).toBe(PATCH);
    const address = new URL(page.url());
    expect(address.searchParams.get("kind")).toBe("allocatable");
    expect(await page.locator("#elsewhere a").getAttribute("href")).toBe(address.pathname + address.search);
    await page.goto(address.href);
    expect(await page.getByLabel("The configuration to decide with").inputValue()).toBe(PATCH);
    expect(await page.getByLabel("Since").inputValue()).toBe("");
    expect(await page.getByLabel("Kind").inputValue()).toBe("allocatable");
    await page.getByLabel("The configuration to decide with").fill(`${PATCH}# ${"x".repeat(3000)}`);
    await page.getByRole("button", { name: "Replay", exact: true }).click();
    await state(page, "done");
    await expect.poll(() => new URL(page.url()).search).toBe("");
    await page.goto(new URL(`/replay?decision=${id}`, ground.url).href);
    await page.getByLabel("The configuration to decide with").fill(PATCH);
    await page.getByRole("button", { name: "Replay this decision" }).click();
    await page.getByText("It would have been different.").waitFor();
    await expect.poll(() => new URL(page.url()).searchParams.get("decision")).toBe(id);
    expect(new URL(page.url()).searchParams.get("change")).toBe(PATCH);
    expect(faults).toEqual([]);
    await close();
  });

  test("a single decision is replayed by its own button", async () => {
    const { page, faults, close } = await ground.open(`/decisions/${id}`);
    await page.getByRole("link", { name: "Replay it with another configuration" }).click();
    await page.getByLabel("The configuration to decide with").fill(PATCH);
    await page.getByRole("button", { name: "Replay this decision" }).click();
    await page.getByText("It would have been different.").waitFor();
    await expectAccessible(page);
    expect(faults).toEqual([]);
    await close();
  });
};
inBrowser("a replay in a browser", fill, tests);
