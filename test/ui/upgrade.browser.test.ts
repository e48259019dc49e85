import { expect, test } from "vitest";
import { capturedNode } from "../kit/real-node.ts";
import { expectReadable, hasScripts, inBrowser, LOOKS_AND_WITHOUT_SCRIPTS } from "./in-browser.ts";
import { decided } from "./served.ts";

const fill = async (url: string): Promise<void> => {
  await decided(url, "allocatable", { snapshot: capturedNode("n1", "v1.34.4") });
};
inBrowser("the upgrade in a browser", fill, (ground) => {
  test.each(LOOKS_AND_WITHOUT_SCRIPTS)(
    "%s: a node's upgrade is reported, and a figure links to its section",
    async (_name, options) => {
      await ground.visit("/upgrade", options, async (page) => {
        expect(await page.title()).toBe("Upgrade · Nodewise");
        await page.getByLabel("To the kubelet").selectOption("1.35");
        await page.getByLabel("From").selectOption("");
        await page.getByLabel("Of the node (").fill("n1");
        await page.getByLabel("A KubeletConfiguration").fill("maxPods: 9");
        await page.getByLabel("The files of its").fill("apiVersion: kubelet.config.k8s.io/v1beta1\nkind: Kubelet");
        await page.getByRole("button", { name: "What would change" }).click();
        await page.locator("#outcome").waitFor();
        await page.locator("article.finding q.kubelet").first().waitFor();
        await page.getByRole("link", { name: "static pods restart" }).click();
        await page.waitForURL(/#static-pods$/);
        if (hasScripts(options)) await expectReadable(page);
      });
    },
  );
});
