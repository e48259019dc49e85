import { expect, test } from "vitest";
import { historyFile } from "../../db/open/node.ts";
import { openNode } from "../../db/sqlite/node/open.ts";
import { value } from "../contract/store-rows.ts";
import { testFolder } from "../db/folder.ts";
import { requesting } from "../kit/pods.ts";
import { capturedNode } from "../kit/real-node.ts";
import { expectReadable, inBrowser, LOOKS } from "./in-browser.ts";
import { decided, served } from "./served.ts";

const POD = requesting("big", { cpu: "500" });

const paths: string[] = [];
const fill = async (url: string): Promise<void> => {
  const snapshot = capturedNode("n1");
  for (const [kind, more] of [
    ["admission", { ask: { pod: POD } }],
    ["cgroups", {}],
    ["eviction", {}],
  ] as const) {
    paths.push(`/decisions/${(await decided(url, kind, { snapshot, ...more })).id}`);
  }
};
inBrowser("a decision in a browser", fill, (ground) => {
  test.each(LOOKS)("%s: verdict, reasons and answer are shown, fit and are accessible", async (_name, options) => {
    for (const path of paths)
      await ground.visit(path, options, async (page) => {
        expect(await page.locator("h1").count()).toBe(1);
        await expectReadable(page);
      });
  });

  test("on a phone the verdict needs no sideways scrolling", async () => {
    await ground.visit(paths[0] ?? "", { viewport: { width: 360, height: 740 } }, async (page) => {
      const box = page.locator(".verdict pre");
      expect(await box.textContent()).toContain("OutOfcpu");
      expect(await box.evaluate((pre) => pre.scrollWidth - pre.clientWidth)).toBe(0);
    });
  });

  test("the button copies a command that opens the same decision", async () => {
    const { page, close } = await ground.open(paths[0] ?? "", {
      permissions: ["clipboard-read", "clipboard-write"],
    });
    await page.getByRole("button", { name: "Copy the command" }).click();
    await page.getByText("Copied").waitFor();
    const text = (await page.evaluate("navigator.clipboard.readText()")) as string;
    expect(text).toBe(`nodewise history show ${paths[0]?.split("/").at(-1)} --api ${ground.url}`);
    await close();
  });

  test("a decision pruned while its page is open stays visible, with a notice", async () => {
    const dataDir = testFolder();
    const own = await served({ dataDir });
    const snapshot = capturedNode("pruned");
    const first = await decided(own.url, "eviction", { snapshot });
    const { page, close } = await ground.open(`${own.url}/decisions/${first.id}`);
    await page.locator("#live-state", { hasText: "live" }).waitFor();
    await decided(own.url, "cgroups", { snapshot });
    const history = value(openNode({ file: historyFile(dataDir) }));
    expect(value(await history.prune({ nowMs: Date.now(), maxRowsPerNode: 1 })).decisions).toBe(1);
    await history.close();
    await decided(own.url, "cpus", { snapshot });
    await page.getByRole("alert").waitFor();
    expect(await page.getByRole("alert").textContent()).toContain("there is no decision");
    expect(await page.locator("#live-state").textContent()).toBe("no longer stored");
    expect(await page.locator("#why").count()).toBe(1);
    await close();
    await own.close();
  });
});
