import { expect, test } from "vitest";
import { createToken, revokeToken } from "../../api/http/auth/tokens.ts";
import { historyFile } from "../../db/open/node.ts";
import { openNode } from "../../db/sqlite/node/open.ts";
import { value } from "../contract/store-rows.ts";
import { capturedNode } from "../kit/real-node.ts";
import { expectReadable, inBrowser } from "./in-browser.ts";
import { decided } from "./served.ts";

let token = "";
let revoke = async (): Promise<void> => {};
const fill = async (url: string, dataDir: string): Promise<void> => {
  await decided(url, "cgroups", { snapshot: capturedNode("node-1") });
  const store = value(openNode({ file: historyFile(dataDir) }));
  const made = value(
    await createToken(store, { name: "person", scopes: ["read", "decide"], node: null, now: Date.now() }),
  );
  token = made.token;
  revoke = async () => {
    value(await revokeToken(store, made.row.id, Date.now()));
    await store.close();
  };
};
inBrowser("signing in, in a browser", fill, (ground) => {
  test("a page whose session ended says so, and signing in leads back to it", async () => {
    const { page, close } = await ground.open("/nodes/node-1?range=1h#eviction");
    const signIn = async (): Promise<void> => {
      await page.getByLabel("Token").fill(token);
      await page.getByRole("button", { name: "Sign in" }).click();
      await page.getByRole("heading", { name: "node-1", level: 1 }).waitFor();
    };
    await signIn();
    await page.locator("#live-state.good").waitFor();
    await page.context().clearCookies();
    const snapshot = { ...capturedNode("node-1"), observedAt: new Date().toISOString() };
    await decided(ground.url, "cpus", { snapshot }, token);
    const note = page.getByRole("alert").filter({ hasText: "session has ended" });
    await note.waitFor();
    expect(await page.locator("#live-state").textContent()).toBe("signed out");
    await expectReadable(page);
    await note.getByRole("link", { name: "Sign in" }).click();
    await signIn();
    const { pathname, search } = new URL(page.url());
    expect(pathname + search).toBe("/nodes/node-1?range=1h");
    // the browser's cache shows nothing of the page after the sign-out
    await page.getByRole("button", { name: "Sign out" }).click();
    await page.getByLabel("Token").waitFor();
    await page.goBack();
    await page.getByLabel("Token").waitFor();
    await close();
  });

  test("sign-in opens the requested page, scripts cannot read the session, and sign-out ends it", async () => {
    const { page, close } = await ground.open("/nodes/node-1");
    const signIn = async (): Promise<void> => {
      await page.getByLabel("Token").fill(token);
      await page.getByRole("button", { name: "Sign in" }).click();
      await page.getByRole("heading", { name: "node-1", level: 1 }).waitFor();
    };
    await expectReadable(page);
    await signIn();
    expect(new URL(page.url()).pathname).toBe("/nodes/node-1");
    expect(await page.evaluate("document.cookie")).toBe("");
    const [cookie] = await page.context().cookies();
    expect(cookie).toMatchObject({ name: "nodewise", httpOnly: true, sameSite: "Strict", secure: false });
    expect(cookie?.value).not.toContain(token.slice(-48));
    expect(Math.abs((cookie?.expires ?? 0) - Date.now() / 1000 - 3600)).toBeLessThan(60);
    // the cookie is also sent with requests of the page's scripts
    expect(await page.evaluate("fetch('/v1/nodes').then(({ status }) => status)")).toBe(200);
    await page.getByRole("button", { name: "Sign out" }).click();
    await page.getByLabel("Token").waitFor();
    expect(await page.context().cookies()).toEqual([]);
    await page.goto(new URL("/nodes/node-1", page.url()).href);
    await signIn();
    await revoke();
    await page.reload();
    await page.getByLabel("Token").waitFor();
    await close();
  });
});
