import type { Page } from "playwright-core";
import { expect, test } from "vitest";
import { capturedNode, capturedText, realNode } from "../kit/real-node.ts";
import type { Json } from "../kit/snapshots.ts";
import { expectAccessible } from "./browser.ts";
import { expectReadable, hasScripts, inBrowser, LOOKS_AND_WITHOUT_SCRIPTS } from "./in-browser.ts";
import { decided } from "./served.ts";

const NAMES = ["node.json", "pods.json", "configz.json", "stats-summary.json", "machine.json", "cpu_manager_state"];
const FILES = NAMES.map(realNode);
const compare = async (page: Page): Promise<void> => {
  await page.getByRole("button", { name: "Compare" }).click();
  await page.locator("#result h2").waitFor();
};

const fill = async (url: string): Promise<void> => {
  await decided(url, "cgroups", { snapshot: capturedNode("node-1") });
  const long = capturedNode("long");
  const pods = (long.pods as unknown as { metadata: Json }[]).map((one, i) => ({
    ...one,
    metadata: { ...one.metadata, namespace: `${"payments-".repeat(6)}blue`, name: `${"ledger-export-".repeat(6)}${i}` },
  }));
  await decided(url, "cgroups", { snapshot: { ...long, pods } });
};
inBrowser("what if, in a browser", fill, (ground) => {
  test.each(LOOKS_AND_WITHOUT_SCRIPTS)(
    "%s: files are uploaded, both answers shown, and the form keeps the files",
    async (_name, options) => {
      const { page, faults, close } = await ground.open("/what-if", options);
      const isScripted = hasScripts(options);
      if (isScripted) await expectAccessible(page);
      await page.getByLabel("Files").setInputFiles(FILES);
      if (isScripted) await page.locator("#chosen", { hasText: "pods.json (" }).waitFor();
      await page.getByLabel("maxPods").fill("9");
      await page.getByLabel("kubeReserved").fill("cpu=300m, memory=1Gi");
      await compare(page);
      expect(new URL(page.url()).hash).toBe("#result");
      await page.locator("#allocatable del", { hasText: "20" }).first().waitFor();
      expect(await page.locator("#cgroups .text-diff ins b").count()).toBeGreaterThan(0);
      // the differences do not extend beyond the edge of a scrolling box
      const wide = (): Promise<string> =>
        page.evaluate(`[...document.querySelectorAll(".scroll, .text-diff")]
        .filter((box) => box.scrollWidth > box.clientWidth + 1).map((box) => box.getAttribute("aria-label")).join()`);
      await expect.poll(wide).toBe("");
      const lines: string[] = await page.evaluate(
        `[...document.querySelectorAll("#allocatable .text-diff .line")].filter((line) => line.offsetHeight > 0).map((line) => line.textContent)`,
      );
      // on a phone, values that do not fit into the columns are below them
      const [cpu] = lines.flatMap((line, i) => (/^cpu +2 /.test(line) ? [i] : []));
      const isNarrow = (options.viewport?.width ?? 1200) < 832;
      expect(lines[cpu ?? -1]?.endsWith("1800m")).toBe(false);
      expect(lines[(cpu ?? -1) + (isNarrow ? 1 : 0)]).toMatch(
        isNarrow ? /^ {2}eviction – {2}ALLOCATABLE 1800m$/ : / 1800m /,
      );
      if (isNarrow) expect(Math.max(...lines.map((line) => line.length))).toBeLessThanOrEqual(40);
      if (isScripted) await expectReadable(page);
      // the page does not ask for the files again
      await page.locator("[name=change]").fill("maxPods: 8");
      await compare(page);
      await page.locator("#allocatable ins", { hasText: "8" }).first().waitFor();
      expect(faults).toEqual([]);
      await close();
    },
  );

  test.each([1440, 1024, 360, 320])(
    "at %i px every column of both answers stays in place beside long names",
    async (width) => {
      await ground.visit("/what-if?node=long", { viewport: { width, height: 900 } }, async (page) => {
        await page.getByLabel("kubeReserved").fill("cpu=300m, memory=1Gi");
        await compare(page);
        await page.evaluate("for (const part of document.querySelectorAll('details.wi-more')) part.open = true");
        const lines: { wide: boolean; text: string }[] =
          await page.evaluate(`[...document.querySelectorAll(".text-diff .line")]
        .filter((line) => line.offsetHeight > 0)
        .map((line) => ({ wide: line.offsetHeight > 1.5 * parseFloat(getComputedStyle(line).lineHeight), text: line.textContent }))`);
        expect(lines.filter(({ wide }) => wide)).toEqual([]);
        expect(lines.some(({ text }) => text.includes("ledger-export-"))).toBe(true);
        expect(Math.max(...lines.map(({ text }) => text.length))).toBeGreaterThan(width < 960 ? 36 : 132);
      });
    },
  );

  test("files can be dropped, and one that is too large is reported before it is sent", async () => {
    const { page, faults, close } = await ground.open("/what-if");
    const drop = async (files: readonly { name: string; text: string }[]): Promise<void> => {
      const transfer = await page.evaluateHandle(`(() => {
        const data = new DataTransfer();
        for (const { name, text } of ${JSON.stringify(files)}) data.items.add(new File([text], name));
        return data;
      })()`);
      await page.dispatchEvent("[data-drop]", "drop", { dataTransfer: transfer });
    };
    await drop([{ name: "huge.json", text: " ".repeat(9 * 1024 * 1024) }]);
    await page.locator("#chosen", { hasText: "huge.json: 9.0 MiB together is more than 8.0 MiB" }).waitFor();
    await page.getByRole("button", { name: "Compare" }).click();
    expect(new URL(page.url()).hash).toBe("");
    await drop(NAMES.map((name) => ({ name, text: capturedText(name) })));
    await page.locator("#chosen", { hasText: "node.json" }).waitFor();
    await compare(page);
    await page.locator(".wi-known", { hasText: "n1" }).waitFor();
    expect(faults).toEqual([]);
    await close();
  });

  test("a stored node works with the keyboard alone, and faults are reported at their field", async () => {
    const { page, close } = await ground.open("/what-if");
    await page.getByLabel("Node of the history").focus();
    await page.keyboard.type("node-2");
    await page.keyboard.press("Enter");
    await page.locator("#told-node", { hasText: "there is no node node-2; there is node-1" }).waitFor();
    const field = page.getByLabel("Node of the history");
    expect(await field.getAttribute("aria-describedby")).toBe("told-node");
    await expectAccessible(page);
    await field.fill("node-1");
    await page.getByLabel("maxPods").focus();
    await page.keyboard.type("9");
    await page.keyboard.press("Enter");
    await page.locator(".wi-known", { hasText: "node-1" }).waitFor();
    await page.locator("#allocatable ins", { hasText: "9" }).first().waitFor();
    await close();
  });

  test("names with markup are shown as text in the browser", async () => {
    const { page, faults, close } = await ground.open("/what-if");
    const evil = "<img src=x onerror=document.title='gone'>";
    await page
      .getByLabel("Files")
      .setInputFiles({ name: `${evil}.json`, mimeType: "text/plain", buffer: Buffer.from(`{"kind": "${evil}"}`) });
    await page.locator("[name=change]").fill(`"${evil}": 1`);
    await page.getByLabel("Pods to remove").fill(evil);
    await compare(page);
    await page.locator("#told-files", { hasText: "onerror" }).waitFor();
    expect(await page.locator("main img").count()).toBe(0);
    expect(await page.title()).toBe("What if · Nodewise");
    // the response has status 422
    expect(faults.filter((fault) => !fault.includes("422"))).toEqual([]);
    await close();
  });
});
