import { expect, test } from "vitest";
import { type ApiSubject, exampleSnapshot, fresh, get, type Of, post, tokenFor } from "./api-subject.ts";

const BROWSER = { accept: "text/html,application/xhtml+xml;q=0.9,*/*;q=0.8" };

/**
 * Requests a page and checks its headers: it must be complete, load only its own resources, and contain no inline
 * scripts or styles.
 */
async function pageAt(api: ApiSubject, path: string, status = 200): Promise<string> {
  const response = await get(api, path, BROWSER);
  const text = await response.text();
  expect(response.status, `${path}: ${text}`).toBe(status);
  expect(response.headers.get("content-type"), path).toMatch(/^text\/html/);
  expect(response.headers.get("content-security-policy")).toMatch(
    /^default-src 'none'; script-src 'self'; style-src 'self'/,
  );
  expect(text.startsWith("<!doctype html>"), path).toBe(true);
  expect(text.trimEnd().endsWith("</html>"), path).toBe(true);
  expect(text.match(/<h1[ >]/g), path).toHaveLength(1);
  const inline = text.replaceAll(/<script type="application\/json"[^>]*>[^<]*<\/script>/g, "");
  expect(inline, path).not.toMatch(/<script(?![^>]* src="\/assets\/)|<style|\sstyle="|\son[a-z]+="/i);
  for (const [, url] of text.matchAll(/\s(?:src|href|action)="([^"]*)"/g))
    expect(url, path).toMatch(/^(?:\/(?!\/)|#|data:,|\?|$)/);
  return text;
}

/** All pages, which are the same on every platform. */
export function pages(of: Of): void {
  shared(of);
  test("every page shows a node with decisions, and links to the others", async () => {
    const node = fresh("node");
    const decided = await post(of(), "/v1/decisions/cgroups", { snapshot: exampleSnapshot(node) });
    const { id, snapshotId } = (await decided.json()) as { id: string; snapshotId: string };
    const fleet = await pageAt(of(), `/?q=${node}`);
    expect(fleet).toContain(`href="/nodes/${node}"`);
    const own = await pageAt(of(), `/nodes/${node}`);
    expect(own).toContain(`href="/decisions/${id}"`);
    expect(await pageAt(of(), `/nodes/${node}/decisions?kind=cgroups`)).toContain(`href="/decisions/${id}"`);
    expect(await pageAt(of(), `/decisions/${id}`)).toContain(`href="/nodes/${node}"`);
    for (const path of [`/what-if?node=${node}`, `/what-if?snapshot=${snapshotId}`, `/lint?node=${node}`])
      expect(await pageAt(of(), path), path).toContain(node);
    for (const path of [
      "/what-if",
      "/replay",
      `/replay?decision=${id}`,
      "/lint",
      "/upgrade",
      `/upgrade?node=${node}&to=1.37&from=1.36`,
      "/docs",
    ])
      await pageAt(of(), path);
  });

  test("an unknown node or decision is a 404 page with similar names", async () => {
    const node = fresh("some-node-of-mine");
    await post(of(), "/v1/decisions/allocatable", { snapshot: exampleSnapshot(node) });
    const near = await pageAt(of(), `/nodes/${node}x`, 404);
    expect(near).toContain(`href="/nodes/${node}"`);
    for (const path of ["/nodes/nobody/decisions", "/decisions/nothing", "/nowhere"]) await pageAt(of(), path, 404);
    await pageAt(of(), "/?sort=nothing", 400);
  });

  test("a node's token sees the pages of its own node only", async () => {
    const [mine, theirs] = [fresh("node"), fresh("node")];
    const ids: string[] = [];
    for (const node of [mine, theirs]) {
      const response = await post(of(), "/v1/decisions/cgroups", { snapshot: exampleSnapshot(node) });
      ids.push(((await response.json()) as { id: string }).id);
    }
    const token = await tokenFor(of().store, ["read"], mine);
    const asked = async (path: string): Promise<number> => {
      const headers = { ...BROWSER, authorization: `Basic ${btoa(`anyone:${token}`)}` };
      const response = await of().fetch(path, { headers });
      const text = await response.text();
      if (response.status === 200) expect(text, path).not.toContain(theirs);
      return response.status;
    };
    for (const path of [
      "/",
      `/nodes/${mine}`,
      `/nodes/${mine}/decisions`,
      `/decisions/${ids[0]}`,
      "/what-if",
      "/replay",
      "/lint",
      "/upgrade",
    ])
      expect(await asked(path), path).toBe(200);
    for (const path of [`/nodes/${theirs}`, `/nodes/${theirs}/decisions`, `/live?node=${theirs}`])
      expect(await asked(path), path).toBe(403);
    expect(await asked(`/decisions/${ids[1]}`)).toBe(404);
    for (const path of [`/what-if?node=${theirs}`, `/lint?node=${theirs}`, `/upgrade?node=${theirs}&to=1.37`])
      expect([403, 404], path).toContain(await asked(path));
  });

  test("/live answers with the newest decision", async () => {
    const node = fresh("node");
    const response = await post(of(), "/v1/decisions/cgroups", { snapshot: exampleSnapshot(node) });
    const { id } = (await response.json()) as { id: string };
    const news = await get(of(), `/live?node=${node}`, { accept: "application/json" });
    expect(await news.json()).toMatchObject({ id });
  });
}

/** URLs that can be shared, and the parts that all pages have in common. */
function shared(of: Of): void {
  test("a list of a node is paged, and a what-if is a link to its answer", async () => {
    const node = fresh("node");
    const decided = await post(of(), "/v1/decisions/cgroups", { snapshot: exampleSnapshot(node) });
    type Cgroups = { id: string; decision: { cgroups: { path: string }[] } };
    const { id, decision } = (await decided.json()) as Cgroups;
    const list = `/nodes/${node}?list=cgroups&of=${encodeURIComponent(decision.cgroups[0]?.path ?? "")}`;
    expect(await pageAt(of(), list)).toContain(`href="/nodes/${node}#cgroups"`);
    for (const query of ["list=nothing", "list=cpus&page=0", "of=x"])
      await pageAt(of(), `/nodes/${node}?${query}`, 400);
    const change = encodeURIComponent('{"maxPods":9}');
    for (const base of [`node=${node}`, `decision=${id}`])
      expect(await pageAt(of(), `/what-if?${base}&as=patch&change=${change}`), base).toContain("What would change");
    await pageAt(of(), `/what-if?node=${node}&maxPods=many`, 400);
  });

  test("the style sheet is one asset with all its parts", async () => {
    const response = await get(of(), "/assets/style.css");
    expect(response.headers.get("content-type")).toMatch(/^text\/css/);
    const body = await response.text();
    // the first rule, the last one and one between
    for (const rule of [":root {", ".plots {", ".finding {"]) expect(body).toContain(rule);
  });
}
