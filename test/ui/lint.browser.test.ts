import { expect, test } from "vitest";
import { capturedNode } from "../kit/real-node.ts";
import { expectReadable, hasScripts, inBrowser, LOOKS_AND_WITHOUT_SCRIPTS } from "./in-browser.ts";
import { decided } from "./served.ts";

const BAD = "evictionHard:\n  nodefs.available: 110%\nkubeResreved:\n  cpu: 500m\n";

const fill = async (url: string): Promise<void> => {
  await decided(url, "allocatable", { snapshot: capturedNode("n1") });
};
inBrowser("the lint in a browser", fill, (ground) => {
  test.each(LOOKS_AND_WITHOUT_SCRIPTS)("%s: a pasted configuration is checked", async (_name, options) => {
    await ground.visit("/lint", options, async (page) => {
      expect(await page.title()).toBe("Lint · Nodewise");
      await page.getByLabel("A KubeletConfiguration").fill(BAD);
      await page.getByLabel("For the node").fill("n1");
      await page.getByRole("button", { name: "Check" }).click();
      await page.locator("#findings-title").waitFor();
      await page.locator("article.finding").nth(2).waitFor();
      expect(await page.getByLabel("A KubeletConfiguration").inputValue()).toBe(BAD);
      if (hasScripts(options)) await expectReadable(page);
    });
  });

  test("a node's own configuration is checked by its link, and a finding links to its line and back", async () => {
    await ground.visit("/lint", {}, async (page) => {
      await page.getByRole("link", { name: "n1" }).click();
      await page.locator("#findings-title").waitFor();
      await page.locator("article.finding a[href^='#line-']").first().click();
      await page.waitForURL(/#line-/);
      const line = new URL(page.url()).hash.slice(1);
      await page.locator(`[id="${line}"] a`).first().click();
      await page.waitForURL(/#finding-\d+$/);
      await expectReadable(page);
    });
  });

  test("a finding's patch is tried by a plain link to the comparison", async () => {
    await ground.visit("/lint", {}, async (page) => {
      await page.getByLabel("A KubeletConfiguration").fill(BAD);
      await page.getByLabel("For the node").fill("n1");
      await page.getByRole("button", { name: "Check" }).click();
      const card = page.locator("article.finding", { hasText: "unknown-field" });
      await card.getByRole("link", { name: "What if n1 had it" }).click();
      await page.waitForURL(/what-if\?node=n1&as=patch&change=/);
      await page.locator("#result h2", { hasText: "What would change" }).waitFor();
      await page.locator("#result ins", { hasText: "500m" }).first().waitFor();
    });
  });

  test("a patch can be copied, and filled into the replay form", async () => {
    const { page, close } = await ground.open("/lint", {
      permissions: ["clipboard-read", "clipboard-write"],
    });
    await page.getByLabel("A KubeletConfiguration").fill(BAD);
    await page.getByRole("button", { name: "Check" }).click();
    const card = page.locator("article.finding", { hasText: "unknown-field" });
    await card.getByRole("button", { name: "Copy the patch of kubeResreved" }).click();
    const wanted = { kubeResreved: null, kubeReserved: { cpu: "500m" } };
    await card.getByText("Copied").waitFor();
    expect(JSON.parse((await page.evaluate("navigator.clipboard.readText()")) as string)).toEqual(wanted);
    await card.getByRole("link", { name: "Replay the history with it" }).click();
    expect(JSON.parse(await page.getByLabel("The configuration to decide with").inputValue())).toEqual(wanted);
    await close();
  });

  test("input larger than a form may be is reported at its field without being sent, and can be replaced", async () => {
    const { page, faults, close } = await ground.open("/lint");
    const posted: string[] = [];
    page.on("request", (request) => {
      if (request.method() === "POST") posted.push(request.url());
    });
    const button = page.getByRole("button", { name: "Check" });
    const input = page.locator("#change-file");
    await page.evaluate(`(() => {
      const data = new DataTransfer();
      data.items.add(new File([" ".repeat(50 * 1024 * 1024)], "huge.yaml"));
      document.querySelector("[data-drop]").dispatchEvent(new DragEvent("drop", { dataTransfer: data, bubbles: true, cancelable: true }));
    })()`);
    const fault = page.getByRole("alert").filter({ hasText: "huge.yaml has 50.0 MiB, and a form may have 8" });
    await fault.waitFor();
    await button.click();
    await page.locator("#change-file:focus").waitFor();
    expect(posted).toEqual([]);
    expect(await input.getAttribute("aria-describedby")).toBe(await fault.getAttribute("id"));
    await input.setInputFiles([]);
    await fault.waitFor({ state: "hidden" });
    await page.evaluate(`document.getElementById("change").value = "é".repeat(5 * 1024 * 1024)`);
    await button.click();
    await page.getByRole("alert").filter({ hasText: "the text has 10.0 MiB" }).waitFor();
    expect(posted).toEqual([]);
    await page.getByLabel("A KubeletConfiguration").fill(BAD);
    await button.click();
    await page.locator("#findings-title").waitFor();
    expect(posted).toHaveLength(1);
    expect(faults).toEqual([]);
    await close();
  });

  test("a file can be chosen or dropped in place of the text", async () => {
    const { page, close } = await ground.open("/lint");
    const dropped = `(() => {
      const data = new DataTransfer();
      data.items.add(new File([${JSON.stringify(BAD)}], "kubelet.yaml"));
      document.querySelector("[data-drop]").dispatchEvent(new DragEvent("drop", { dataTransfer: data, bubbles: true, cancelable: true }));
    })()`;
    await page.evaluate(dropped);
    await page.getByRole("button", { name: "Check" }).click();
    await page.locator("#findings-title").waitFor();
    expect(await page.getByLabel("A KubeletConfiguration").inputValue()).toBe(BAD);
    await close();
  });
});
