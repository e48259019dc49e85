import { mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { chromium, type Page } from "playwright-core";
import { startApi } from "../../api/server.ts";
import { container } from "../kit/containers.ts";
import { pod } from "../kit/pods.ts";

// `node test/ui/screenshots.ts`: the pictures of the README, of the captured node and some like it

const OUT = resolve(import.meta.dirname, "../../api/ui/screenshots");
const CHROMIUM = process.env["CHROMIUM"] ?? "/usr/bin/chromium";
const data = (name: string): unknown =>
  JSON.parse(readFileSync(join(import.meta.dirname, "../data/real-node", name), "utf8"));

interface Parts {
  readonly pods: readonly { readonly spec: object }[];
  readonly node: { readonly metadata: object };
  readonly stats: { readonly node: { readonly memory: { readonly time: string } } };
}
const captured = data("snapshot.json") as Parts;
const runtime = { images: data("images.json"), containers: data("containers.json"), sandboxes: data("sandboxes.json") };

/** The captured node under another name, at another time, with so much memory left. */
function capturedAt(name: string, atMs: number, availableBytes: number | null): object {
  const { node } = captured.stats;
  const time = new Date(atMs).toISOString();
  const memory = { ...node.memory, time, ...(availableBytes === null ? {} : { availableBytes }) };
  const own = { ...captured.node, metadata: { ...captured.node.metadata, name } };
  const pods = captured.pods.map((pod) => ({ ...pod, spec: { ...pod.spec, nodeName: name } }));
  return {
    ...captured,
    pods,
    runtime,
    observedAt: time,
    node: own,
    stats: { ...captured.stats, node: { ...node, nodeName: name, memory } },
  };
}

const POD = pod("trainer", {
  metadata: { namespace: "ml" },
  spec: { containers: [container("main", { cpu: "1500m", memory: "4Gi" }, undefined, { image: "trainer:1" })] },
});

async function fill(url: string): Promise<void> {
  const post = async (kind: string, body: object): Promise<void> => {
    const headers = { "content-type": "application/json" };
    const response = await fetch(`${url}/v1/decisions/${kind}`, {
      method: "POST",
      headers,
      body: JSON.stringify(body),
    });
    if (!response.ok) throw new Error(`${kind}: ${await response.text()}`);
  };
  const now = Date.now();
  for (let n = 1; n <= 12; n++) {
    const name = `worker-${String(n).padStart(2, "0")}`;
    const isShort = n % 4 === 0;
    for (let pass = 0; pass < (n === 4 ? 60 : 3); pass++) {
      const left = isShort ? Math.round(900e6 - pass * 9e6 + 40e6 * Math.sin(pass / 4)) : null;
      await post("eviction", { snapshot: capturedAt(name, now - 900_000 + pass * 15_000, left) });
    }
    const snapshot = capturedAt(name, now, isShort ? 420e6 : null);
    for (const kind of ["allocatable", "cgroups", "cpus", "memory", "image-gc"]) await post(kind, { snapshot });
    if (n % 3 === 0) await post("admission", { snapshot, ask: { pod: POD } });
  }
}

async function shoot(page: Page, name: string): Promise<void> {
  await page.screenshot({ path: join(OUT, `${name}.png`), animations: "disabled" });
}

const dataDir = mkdtempSync(join(tmpdir(), "nodewise-shots-"));
const api = await startApi({ dataDir, port: 0, log: { info() {}, warn() {}, error() {}, debug() {} } as never });
if (!api.ok) throw new Error(api.error.message);
const browser = await chromium.launch({ executablePath: CHROMIUM, args: ["--no-sandbox", "--disable-gpu"] });
try {
  await fill(api.value.url);
  mkdirSync(OUT, { recursive: true });
  const page = await browser.newPage({ viewport: { width: 1180, height: 760 } });
  await page.goto(api.value.url);
  await shoot(page, "fleet");
  await page.goto(`${api.value.url}/nodes/worker-04`);
  await page.evaluate("new Promise((done) => setTimeout(done, 500))");
  await shoot(page, "node");
  await page.goto(`${api.value.url}/nodes/worker-04#eviction`);
  await shoot(page, "node-eviction");
  await page.goto(`${api.value.url}/?show=refused`);
  await page
    .locator("#decisions a", { hasText: /^[0-9a-f]{12}$/ })
    .first()
    .click();
  await page.waitForURL(/decisions/);
  await shoot(page, "decision");
  await page.goto(`${api.value.url}/what-if?node=worker-01`);
  await page.getByLabel("kubeReserved").fill("cpu=1, memory=2Gi");
  await page.getByRole("button", { name: "Compare" }).click();
  await page.waitForLoadState();
  await page.locator("h2").first().scrollIntoViewIfNeeded();
  await shoot(page, "what-if");
} finally {
  await browser.close();
  await api.value.close();
  rmSync(dataDir, { recursive: true });
}
