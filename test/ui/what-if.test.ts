import { expect, test } from "vitest";
import { newToken, webSha256 } from "../../api/http/auth/tokens.ts";
import { NEWEST } from "../../api/profiles/index.ts";
import { appOver } from "../api/serving.ts";
import { value } from "../contract/store-rows.ts";
import { captured, capturedNode, capturedText } from "../kit/real-node.ts";

const NAMES = [
  "node.json",
  "pods.json",
  "configz.json",
  "stats-summary.json",
  "images.json",
  "containers.json",
  "sandboxes.json",
  "imagefs.json",
  "machine.json",
  "cpu_manager_state",
  "memory_manager_state",
  "allocated_pods_state",
];
type Named = readonly (readonly [name: string, text: string])[];
const CAPTURED: Named = NAMES.map((name) => [name, capturedText(name)]);
const without = (...names: readonly string[]): Named => CAPTURED.filter(([name]) => !names.includes(name));

type App = ReturnType<typeof appOver>["app"];
interface Asking {
  readonly files?: readonly (readonly [name: string, content: string | Uint8Array<ArrayBuffer>])[];
  readonly texts?: Readonly<Record<string, string>>;
  readonly headers?: Readonly<Record<string, string>>;
  readonly status?: number;
}

/** Posts the form as a browser does, and returns the resulting page. */
async function asked(app: App, { files = [], texts = {}, headers = {}, status = 200 }: Asking): Promise<string> {
  const form = new FormData();
  for (const [name, text] of files) form.append("files", new File([text], name));
  for (const [name, text] of Object.entries(texts)) form.append(name, text);
  const encoded = new Response(form);
  const type = encoded.headers.get("content-type") ?? "";
  const response = await app.request("/what-if", {
    method: "POST",
    body: await encoded.arrayBuffer(),
    headers: { accept: "text/html", "content-type": type, ...headers },
  });
  const text = await response.text();
  expect(response.status, plain(text).slice(0, 3000)).toBe(status);
  expect(text).not.toMatch(/<script>|\son\w+="|style="|<style/i);
  return text;
}
const unescaped = (text: string): string =>
  text
    .replaceAll("&lt;", "<")
    .replaceAll("&gt;", ">")
    .replaceAll("&quot;", '"')
    .replaceAll("&#39;", "'")
    .replaceAll("&amp;", "&");
const plain = (page: string): string =>
  unescaped(page.replaceAll("<wbr>", "").replace(/<[^>]*>/g, " ")).replace(/\s+/g, " ");
const resultIn = (page: string): string => page.slice(page.indexOf('<section id="result"'));
const cardOf = (page: string, kind: string): string =>
  plain(
    new RegExp(
      `<(?:section|details|li)[^>]* id="${kind}"[\\s\\S]*?(?=<(?:section|h3>|details class="wi-same|li id))`,
    ).exec(resultIn(page))?.[0] ?? "",
  );
/** The snapshot of a single node that `nodewise snapshot` printed. */
const SNAPSHOT = captured("snapshot.json") as { readonly pods: readonly unknown[] };
const keptIn = (page: string): string => unescaped(/name="kept" value="([^"]*)"/.exec(page)?.[1] ?? "");

test("files printed by kubectl, crictl and the kubelet give every kind on both sides, with differences", async () => {
  const { app, store } = appOver({});
  const page = await asked(app, {
    files: CAPTURED,
    texts: { cgroup: "1", kubeReserved: "cpu=300m", maxPods: "9" },
  });
  for (const kind of [
    "allocatable",
    "cgroups",
    "eviction",
    "image-gc",
    "container-gc",
    "cpus",
    "memory",
    "topology",
    "devices",
    "resize",
  ])
    expect(resultIn(page), kind).toContain(`id="${kind}"`);
  const result = plain(resultIn(page));
  expect(result).toContain("maxPods 20 9");
  expect(result).toContain("kubeReserved.cpu 100m 300m");
  const cgroups = cardOf(page, "cgroups");
  expect(cgroups).toContain("1 cgroup file would change");
  expect(cgroups).toContain("/kubepods cpu.shares 1843 1638");
  expect(resultIn(page)).toMatch(/<del class="line">[^\n]*?<b>1843<\/b>/);
  expect(resultIn(page)).toMatch(/<ins class="line">[^\n]*?<b>1638<\/b>/);
  expect(plain(page)).toContain("cpu_manager_state");
  expect(page.length).toBeLessThan(400_000);
  // the API has recorded nothing
  expect(value(await store.listNodes())).toEqual([]);
});

test("only changes are marked, not a ranking or column that merely appears", async () => {
  const { app } = appOver({});
  const page = await asked(app, { files: CAPTURED, texts: { cgroup: "1", evictionHard: "memory.available<28Gi" } });
  const card = /<section[^>]* id="eviction".*?<\/section>/s.exec(resultIn(page))?.[0] ?? "";
  const lines = card.match(/<(del|ins) class="line">.*?<\/\1>/gs) ?? [];
  const marked = lines.map((line) => plain(line).trim());
  expect(marked.filter((line) => /^memory.available .* below/.test(line))).toHaveLength(2);
  expect(card).toMatch(/<span class="line">SIGNAL [^<]*GRACE LEFT/);
  expect(marked.filter((line) => /^SIGNAL|FIRST TO GO|^\d+ |not short, and not ranked|PRIORITY/.test(line))).toEqual(
    [],
  );
  // the eviction verdict changes and is marked; unchanged verdicts are not
  expect(card).toMatch(/<h3[^>]*>eviction <span class="tag good">calm<\/span> → <span class="tag bad">evicts</);
  const config = await asked(app, { files: CAPTURED, texts: { cgroup: "1", kubeReserved: "cpu=300m" } });
  expect(resultIn(config)).toContain(
    'id="allocatable"><h3 class="wi-turn">allocatable <span class="tag">decided</span>',
  );
  expect(
    resultIn(config)
      .match(/<details class="wi-same"[^>]*><summary>.*?<\/summary>/g)
      ?.join(""),
  ).not.toMatch(/tag (?:good|warn|bad)/);
});

test("a long value is shown in full before and after", async () => {
  const { app } = appOver({});
  const reserved = `0-${"1,0-".repeat(60)}1`;
  const page = await asked(app, {
    files: CAPTURED,
    texts: { cgroup: "1", change: `reservedSystemCPUs: "${reserved}"\n` },
  });
  expect(/<h2>What would change<\/h2>.*?<\/table>/s.exec(page)?.[0]).toContain(
    `<code class="wi-value">${reserved}</code>`,
  );
});

test("a wrong value is reported at its field, and all fields keep their text", async () => {
  const { app } = appOver({});
  const typed = { kubeReserved: "cpu=abc", maxPods: "9", change: "podPidsLimit: 100\n", topologyManagerPolicy: "none" };
  const ask = (texts: Readonly<Record<string, string>>, status: number) =>
    asked(app, { files: CAPTURED, texts: { cgroup: "1", ...texts }, status });
  const wrong = await ask(typed, 422);
  expect(wrong).toMatch(/name="kubeReserved" value="cpu=abc"[^>]* aria-invalid="true"/);
  expect(plain(/id="told-kubeReserved".*?<\/label>/s.exec(wrong)?.[0] ?? "")).toContain(
    "kubeReserved.cpu: abc is not a quantity",
  );
  expect(wrong).not.toContain('id="told-change"');
  for (const page of [wrong, await ask({ ...typed, kubeReserved: "cpu=300m" }, 200)]) {
    expect(page).toContain('name="maxPods" value="9"');
    expect(page).toMatch(/<textarea[^>]* name="change"[^>]*>\npodPidsLimit: 100\n<\/textarea>/);
    expect(page).toContain('<option value="none" selected>none</option>');
  }
});

test("other requests of a pod show what the kubelet does with them, beside pending resizes", async () => {
  const { app } = appOver({});
  const ask = async (resize: string, status = 200) =>
    asked(app, { files: CAPTURED, texts: { cgroup: "1", resize }, status });
  const page = await ask("default/burst-lim cpu=300m, memory=64Mi");
  expect(plain(resultIn(page))).toContain("pod default/burst-lim is to have other resources");
  const card = cardOf(page, "resize");
  expect(card).toContain("no pod waits for a resize");
  expect(card).toContain("Deferred default/burst-lim: it waits until the node has room");
  expect(card).toContain("Node didn't have enough resource: cpu, requested: 300, used: 1700, capacity: 1800");
  // only the pod changes, so allocatable is decided as without the resize
  expect(cardOf(page, "allocatable")).toContain("decided");
  for (const [text, message] of [
    [
      "burst-lim cpu=1",
      "expected a pod, its container if it has several, and amounts, as in default/web cpu=2,memory=1Gi",
    ],
    ["default/burst-lim", "and amounts, as in default/web cpu=2,memory=1Gi; found default/burst-lim"],
    ["default/burst-lim cpu=much", "ask.to.cpu"],
    ["default/burst-lim pods=2", "only cpu and memory change while a pod runs"],
  ] as const)
    expect(plain(await ask(text, 422)), text).toContain(message);
  expect(cardOf(await ask("default/gone cpu=1"), "resize")).toContain("no pod `default/gone` that runs");
});

test("the known parts are counted as decisions count them, and image file systems are shown", async () => {
  const { app } = appOver({});
  const pods = captured("pods.json");
  for (const pod of pods.items.slice(0, 3)) pod.spec.nodeName = "n2";
  const count = pods.items.length - 3;
  const page = plain(await asked(app, { files: [...without("pods.json"), ["pods.json", JSON.stringify(pods)]] }));
  expect(page).toContain(`pods ${count} of this node; 3 of others do not count`);
  expect(page).toContain("image file systems 1 ");
  expect(plain(await asked(app, { files: CAPTURED }))).toContain(`pods ${pods.items.length} configuration`);
});

test("recognised parts are kept in the form, so that the next question needs no files", async () => {
  const { app } = appOver({});
  const first = await asked(app, { files: CAPTURED, texts: { cgroup: "1" } });
  expect(plain(resultIn(first))).toContain("Nothing was changed");
  const kept = keptIn(first);
  expect(JSON.parse(kept)).toMatchObject({ node: { metadata: { name: "n1" } } });
  expect(kept).not.toContain("last-applied-configuration");
  const second = await asked(app, { texts: { kept, cgroup: "1", change: "maxPods: 9" } });
  expect(cardOf(second, "allocatable")).toContain("20 9");
  expect(second).toContain(">\nmaxPods: 9</textarea>");
  expect(keptIn(second)).toBe(kept);
});

test("a stored snapshot, by id or as a node's newest, is decided with its facts, and nothing is recorded", async () => {
  const { app, store } = appOver({});
  const kept = JSON.parse(keptIn(await asked(app, { files: CAPTURED, texts: { cgroup: "1" } })));
  kept.runtime.images.push({ id: `sha256:${"9".repeat(64)}`, repoTags: ["unused:1"], size: "1000" });
  // the daemon has known the image for twenty minutes
  for (const time of ["06:04:50", "06:24:50"]) {
    const response = await app.request("/v1/decisions/image-gc", {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ snapshot: { ...kept, observedAt: `2026-11-21T${time}Z` } }),
    });
    expect(response.status, await response.text()).toBe(200);
  }
  const snapshotId = value(await store.latestSnapshot("n1"))?.id ?? "";
  const headers = { accept: "text/html" };
  const form = await (await app.request(`/what-if?snapshot=${snapshotId}`, { headers })).text();
  expect(form).toContain(`value="${snapshotId}"`);
  expect(plain(form)).toContain("n1");
  const byId = await asked(app, {
    texts: { snapshot: snapshotId, change: "imageGCLowThresholdPercent: 1\nimageGCHighThresholdPercent: 2" },
  });
  const byNode = await asked(app, {
    texts: { node: "n1", imageGCLowThresholdPercent: "1", imageGCHighThresholdPercent: "2" },
  });
  for (const page of [byId, byNode]) {
    expect(cardOf(page, "image-gc")).toContain("highThresholdPercent 85 2");
    expect(cardOf(page, "image-gc")).toContain("Only after: images removed unused:1");
    expect(plain(page)).not.toContain("remember nothing here");
  }
  // a named node takes precedence over the node of the given snapshot
  const other = await asked(app, { texts: { snapshot: snapshotId, node: "n2" }, status: 422 });
  expect(plain(other)).toContain("there is no node n2");
  expect(value(await store.listDecisions({ limit: 9 })).items).toHaveLength(2);
});

const WEB =
  "apiVersion: v1\nkind: Pod\nmetadata: {name: web, namespace: default}\nspec:\n  containers:\n  - {name: web, image: nginx, resources: {requests: {memory: 64Mi}}}\n";

test("an added pod shows whether it is admitted on both sides, its resources and its cgroups", async () => {
  const { app } = appOver({});
  const free = await asked(app, { files: CAPTURED, texts: { cgroup: "1", pod: WEB } });
  expect(cardOf(free, "admission")).toContain("decided");
  expect(cardOf(free, "cgroups")).toContain("podwhat-if cpu.shares none 2");
  const full = await asked(app, { files: CAPTURED, texts: { cgroup: "1", pod: WEB, maxPods: "11" } });
  expect(cardOf(full, "admission")).toContain("decided → refused");
  expect(cardOf(full, "admission")).toContain("OutOfpods");
  expect(cardOf(full, "cgroups")).not.toContain("podwhat-if");
});

test("a removed pod's cgroups, stats and containers disappear, and unknown names get similar ones", async () => {
  const { app } = appOver({});
  const page = await asked(app, { files: CAPTURED, texts: { cgroup: "1", remove: "default/burst-lim" } });
  expect(cardOf(page, "cgroups")).toContain("memory.limit_in_bytes 128 MiB none");
  expect(cardOf(page, "eviction")).toContain("rankings[0].total (memory) 11 10");
  expect(cardOf(page, "container-gc")).toContain("keep");
  expect(cardOf(page, "container-gc")).not.toContain("containers removed");
  const wrong = await asked(app, { files: CAPTURED, texts: { remove: "default/burst-lin" }, status: 422 });
  expect(plain(wrong)).toContain("there is no pod default/burst-lin ; there is default/burst-lim");
  expect(keptIn(wrong)).toContain("n1");
});

test("a refused kind says why and what it needs, on either side", async () => {
  const { app } = appOver({});
  const none = await asked(app, { files: without("stats-summary.json"), texts: { maxPods: "9" } });
  expect(cardOf(none, "eviction")).toContain("stats");
  expect(cardOf(none, "eviction")).toContain("the kubelet's /stats/summary");
  const broken = await asked(app, { files: CAPTURED, texts: { cgroup: "1", imageGCHighThresholdPercent: "10" } });
  const words = "LowThresholdPercent 80 can not be higher than HighThresholdPercent 10";
  expect(plain(resultIn(broken))).toContain("refuses start");
  expect(cardOf(broken, "image-gc")).toContain(words);
});

test("a whole configuration, a library machine and pasted documents can be combined", async () => {
  const { app } = appOver({});
  const paste = `${capturedText("node.json")}\n---\n${capturedText("pods.json")}\n---\nkind: KubeletConfiguration\nmaxPods: 30\n`;
  const page = await asked(app, {
    texts: {
      paste,
      machine: "xeon-2s",
      change: "kind: KubeletConfiguration\nmaxPods: 31\n",
      as: "whole",
      cpuManagerPolicy: "static",
    },
  });
  expect(plain(resultIn(page))).toContain("maxPods 30 31");
  expect(plain(resultIn(page))).toContain("cgroup version 2, as nothing says which");
  expect(page).toContain('<option value="xeon-2s" selected>');
  expect(page).toContain('<option value="static" selected>');
  expect(page).toContain('value="whole" checked');
});

test.each([
  [
    "half a JSON",
    [["pods.json", '{"kind": "PodList", "items": [']],
    "pods.json:1:31: is not JSON: expected a value; the text is cut off",
  ],
  [
    "a wrong field",
    [["node.json", '{"kind": "Node",\n "metadata": {"name": 5}}']],
    "node.json:2:23: node.metadata.name",
  ],
  ["an alias bomb", [["a.yaml", `a: &a [x]\nb: &b [${"*a,".repeat(1100)}]`]], "a.yaml:"],
  [
    "two nodes",
    [
      ["a.json", '{"kind":"Node","metadata":{"name":"a"}}'],
      ["b.json", '{"kind":"Node","metadata":{"name":"b"}}'],
    ],
    "b.json: is",
  ],
  [
    "a list of nodes",
    [["n.json", '{"kind":"List","items":[{"kind":"Node"},{"kind":"Node"}]}']],
    "a list of 2 nodes: give one",
  ],
] as [string, [string, string][], string][])(
  "%s is reported with its place, and the rest of the form stays",
  async (_name, files, words) => {
    const { app } = appOver({});
    const page = await asked(app, { files, texts: { change: "maxPods: 7", remove: "a/b" }, status: 422 });
    expect(plain(page)).toContain(words);
    expect(page).toContain('aria-invalid="true"');
    expect(page).toContain(">\nmaxPods: 7</textarea>");
    expect(page).toContain('value="a/b"');
  },
);

test("objects that are no part of a node are reported by file, and do not stop the answer", async () => {
  const { app } = appOver({});
  const event = {
    apiVersion: "v1",
    kind: "Event",
    involvedObject: { kind: "Pod", name: "x" },
    reason: "Killing",
    type: "Normal",
  };
  const list = { kind: "List", items: [event, event, { kind: "Service", metadata: { name: "s" } }] };
  const page = await asked(app, {
    files: [
      ...without(),
      ["web.yaml", "kind: Deployment\nmetadata: {name: web}"],
      ["events.json", JSON.stringify({ ...list, items: [event] })],
      ["all.json", JSON.stringify(list)],
      ["event.json", JSON.stringify(event)],
    ],
    texts: { change: "maxPods: 7" },
  });
  const words = plain(page);
  expect(words).toContain("web.yaml: skipped, as it is an object of kind Deployment , which is no part of a node");
  expect(words).toContain("events.json: 1 of kind Event skipped: only a node and its pods count");
  expect(words).toContain("all.json: 2 of kind Event, 1 of kind Service skipped");
  expect(words).toMatch(/event\.json: skipped, as it is .*nodewise why\s+does/);
  expect(words).toContain("What would change");
  expect(page).not.toContain('aria-invalid="true"');
});

test("empty, binary and unrelated files are reported each, and do not stop the answer", async () => {
  const { app } = appOver({});
  const files = [
    ["empty.json", " \n"],
    ["comment.yaml", "# nothing yet\n"],
    ["photo.png", new Uint8Array([0x89, 0x50, 0x4e, 0x47, 0xff])],
    ["zeros.bin", "\0\0\0"],
    ["notes.txt", "hello"],
    ["nodes.txt", "NAME   STATUS\nn1     Ready\n"],
    ["inspect.json", JSON.stringify({ status: { id: "x", metadata: { name: "c" } }, info: {} })],
  ] as const;
  const messages = [
    "empty.json: skipped, as it is empty",
    "comment.yaml: skipped, as it is empty",
    "photo.png: skipped, as it is not UTF-8 text",
    "zeros.bin: skipped, as it is not UTF-8 text",
    "notes.txt: skipped, as it is text, which is no part of a node",
    "nodes.txt: skipped, as it is a table, made for people: give what the same command prints with -o json",
    "inspect.json: skipped, as it is what crictl inspect prints: give what crictl ps -a -o json prints",
  ];
  const page = await asked(app, { files: [...without(), ...files], texts: { change: "maxPods: 7" } });
  expect(page).not.toContain('aria-invalid="true"');
  // each message appears once, above the answer
  for (const words of messages) {
    expect(plain(page).split(words)).toHaveLength(2);
    expect(plain(resultIn(page)).split("What would change")[0]).toContain(words);
  }
  expect(plain(resultIn(page))).toContain("maxPods 20 7");
  const nothing = plain(await asked(app, { files: files.slice(0, 3), texts: {}, status: 422 }));
  expect(nothing).toContain("there is no node yet");
  for (const words of messages.slice(0, 3)) expect(nothing).toContain(words);
});

test("empty lists keep the known pods and say so, except a PodList", async () => {
  const { app } = appOver({});
  const podsBeside = async (file: string, value: object, files = without()): Promise<readonly [string, object]> => {
    const page = await asked(app, {
      files: [...files, [file, JSON.stringify(value)]],
      texts: { change: "maxPods: 7" },
    });
    return [plain(resultIn(page)), JSON.parse(keptIn(page)) as object];
  };
  const pods = (JSON.parse(without().find(([name]) => name === "pods.json")?.[1] as string) as { items: unknown[] })
    .items;
  for (const kind of ["List", "EventList", "PodDisruptionBudgetList"]) {
    const [words, kept] = await podsBeside("empty.json", { kind, items: [] });
    expect(words.split("empty.json: skipped, as it is")).toHaveLength(2);
    expect(kept).toHaveProperty("pods.length", pods.length);
  }
  const whole: [string, string][] = [["snapshot.json", JSON.stringify(SNAPSHOT)]];
  expect((await podsBeside("empty.json", { kind: "List", items: [] }, whole))[1]).toHaveProperty(
    "pods.length",
    SNAPSHOT.pods.length,
  );
  expect((await podsBeside("empty.json", { kind: "PodList", items: [] }, whole))[1]).toHaveProperty("pods", []);
  const [words, kept] = await podsBeside("pods.json", { kind: "List", items: [] }, without("pods.json"));
  expect(words).toContain("pods.json: read as an empty list of the node's pods");
  expect(kept).toHaveProperty("pods", []);
});

test("unreadable and faulty files are reported with their place, and do not stop the answer", async () => {
  const { app } = appOver({});
  const files = [
    ...without("pods.json"),
    ["torn.json", '{"kind": "PodList", "items": ['],
    ["page.html", "<html>: [\n"],
    ["bomb.yaml", `a: &a [x]\nb: &b [${"*a,".repeat(1100)}]`],
    ["nodes.json", '{"kind":"List","items":[{"kind":"Node"},{"kind":"Node"}]}'],
    ["pods.json", '{"kind":"PodList","items":[{"metadata":{"name":"x"},"spec":{"containers":[]}}]}'],
  ] as const;
  const messages = [
    "torn.json:1:31: is not JSON: expected a value; the text is cut off; skipped",
    "page.html:2:1: is not YAML or JSON",
    "bomb.yaml:",
    "nodes.json: is a list of 2 nodes: give one (kubectl get node NAME -o json); skipped",
    "pods.json:1:74: pods[0].spec.containers: a pod has at least one container; skipped",
  ];
  const page = await asked(app, { files, texts: { change: "maxPods: 7" } });
  expect(page).not.toContain('aria-invalid="true"');
  for (const words of messages) expect(plain(resultIn(page)).split("What would change")[0]).toContain(words);
  expect(plain(resultIn(page))).toContain("maxPods 20 7");
  const kept = JSON.parse(keptIn(page)) as object;
  expect(kept).toHaveProperty("node");
  expect(kept).toHaveProperty("stats");
  expect(kept).not.toHaveProperty("pods");
  const alone = await asked(app, { files: files.slice(-1), texts: { change: "maxPods: 7" }, status: 422 });
  expect(plain(alone)).toContain("pods.json:1:74: pods[0].spec.containers: a pod has at least one container");
});

test.each([
  [{ change: "maxPods: [" }, "the change:1:"],
  [{ change: "maxPods: x" }, "the change:1:10: kubeletConfiguration.maxPods"],
  [{ change: "- 1" }, "expected fields of a KubeletConfiguration"],
  [{ maxPods: "many" }, "maxPods: expected a whole number, found many"],
  [{ kubeReserved: "cpu" }, "kubeReserved: expected pairs such as"],
  [{ pod: "kind: Deployment" }, "the pod: expected a v1.Pod"],
  [{ pod: "metadata: {name: x}\nspec: {containers: []}" }, "the pod:2:20: ask.pod.spec.containers"],
  [{ machine: "abacus" }, "there is no machine abacus"],
  [{ node: "n0" }, "there is no node n0"],
  [{ snapshot: "f".repeat(32) }, "there is no snapshot"],
  [{ kept: "{" }, "cannot be read: choose them again"],
  [{ kept: `{"a":${"[".repeat(200)}${"]".repeat(200)}}` }, "cannot be read: choose them again"],
] as const)("%o is reported at its field", async (texts, words) => {
  const { app } = appOver({});
  const page = await asked(app, { files: [["node.json", capturedText("node.json")]], texts, status: 422 });
  expect(plain(page)).toContain(words);
  expect(page).toContain(`id="told-${"kept" in texts ? "files" : Object.keys(texts)[0]}"`);
});

test("missing input and a misspelt field are reported", async () => {
  const { app } = appOver({});
  expect(plain(await asked(app, { status: 422 }))).toContain("there is no node yet");
  const page = await asked(app, { files: CAPTURED, texts: { change: "maxPod: 4" } });
  expect(plain(page)).toContain("the change:1:9: the kubelet knows no field maxPod ; maxPods is near");
});

test("names and texts with markup are shown as text", async () => {
  const { app } = appOver({});
  const evil = '"><img src=x onerror=alert(1)>';
  const node = captured("node.json");
  node.metadata.name = evil;
  const page = await asked(app, {
    files: [
      [`${evil}.json`, JSON.stringify(node)],
      ["b", `${evil}: [`],
    ],
    texts: {
      paste: "</textarea><script>alert(1)</script>",
      change: `${evil}: 1`,
      remove: evil,
      machine: evil,
      node: evil,
    },
    status: 422,
  });
  expect(page).not.toContain("<img");
  expect(page).not.toContain("<script>alert");
  const images = { images: [{ id: "sha256:0", repoTags: [evil], size: "1" }] };
  const named = await asked(app, {
    files: [
      ...without("images.json", "node.json"),
      [evil, capturedText("node.json")],
      ["images.json", JSON.stringify(images)],
    ],
    texts: { change: `'${evil}': 1` },
  });
  expect(named).not.toContain("<img");
  expect(plain(named)).toContain("onerror=alert(1)> as node");
  expect(cardOf(named, "image-gc")).toContain("onerror");
});

test("an oversized upload gives a page with advice, before it is read", async () => {
  const { app, log } = appOver({});
  const page = await asked(app, { files: [["big.json", " ".repeat(50 * 1024 * 1024)]], status: 413 });
  expect(plain(page)).toContain("larger than 8 MiB");
  expect(plain(page)).toContain("nodewise decide");
  expect(log.lines.at(-1)?.fields["code"]).toBe("body_too_large");
});

test("parts too large to keep in the form are reported, and compared all the same", async () => {
  const { app } = appOver({});
  const images = Array.from({ length: 8000 }, (_, i) => ({
    id: `sha256:${String(i).padStart(64, "0")}`,
    repoTags: [`registry.local/some/long/name/image-${i}:v1`],
    size: "1000",
  }));
  const page = await asked(app, {
    files: [...without("images.json"), ["images.json", JSON.stringify({ images })]],
    texts: { maxPods: "9" },
  });
  expect(keptIn(page)).toBe("");
  expect(plain(page)).toContain("too much for the form to keep");
  expect(plain(resultIn(page))).toContain("maxPods 20 9");
  expect(page.length).toBeLessThan(500_000);
});

test("forms of other sites, and bodies that are no form, are refused", async () => {
  const { app } = appOver({});
  for (const site of ["cross-site", "same-site"]) {
    const page = await asked(app, { headers: { "sec-fetch-site": site }, status: 403 });
    expect(plain(page)).toContain("forbidden_site");
  }
  await asked(app, { headers: { "sec-fetch-site": "same-origin" }, status: 422 });
  const json = await app.request("/what-if", {
    method: "POST",
    body: "{}",
    headers: { "content-type": "application/json" },
  });
  expect(json.status).toBe(415);
  const torn = await app.request("/what-if", {
    method: "POST",
    body: "--x\r\nno",
    headers: { "content-type": "multipart/form-data; boundary=x" },
  });
  expect(torn.status).toBe(400);
  const link = await app.request("/what-if", { headers: { "sec-fetch-site": "cross-site", accept: "text/html" } });
  expect(link.status).toBe(200);
});

test("an unknown node gives a page with its status, and a node's token sees its own node only", async () => {
  const { app, store } = appOver({});
  for (const name of ["node-a", "node-b"]) {
    const snapshot = capturedNode(name);
    await app.request(`/v1/nodes/${name}/snapshot`, {
      method: "PUT",
      headers: { "content-type": "application/json" },
      body: JSON.stringify(snapshot),
    });
  }
  const headers = { accept: "text/html" };
  expect(plain(await (await app.request("/what-if?node=node-c", { headers })).text())).toContain("node-a");
  expect((await app.request("/what-if?node=node-c", { headers })).status).toBe(404);
  expect((await app.request(`/what-if?snapshot=${"0".repeat(32)}`, { headers })).status).toBe(404);
  expect((await app.request("/what-if?x=1", { headers })).status).toBe(400);
  const token = newToken();
  value(
    await store.createToken({
      id: token.id,
      name: "n",
      hash: await webSha256(token.text),
      scopes: ["read"],
      node: "node-a",
      createdAtMs: 1,
      revokedAtMs: null,
    }),
  );
  const own = { accept: "text/html", authorization: `Basic ${btoa(`x:${token.text}`)}` };
  expect((await app.request("/what-if?node=node-b", { headers: own })).status).toBe(403);
  const page = await app.request("/what-if?node=node-a", { headers: own });
  expect(page.status).toBe(200);
  expect(await page.text()).not.toContain("node-b");
  await asked(app, { texts: { node: "node-b" }, headers: own, status: 403 });
});

test("defaults printed by the current kubelet count as unset for another version, as in an upgrade", async () => {
  const { app } = appOver();
  const old = CAPTURED.map(([name, text]) => [name, text.replaceAll("v1.36.3", "v1.34.4")] as const);
  const words = plain(await asked(app, { files: old, texts: { cgroup: "1", kubelet: "1.35" } }));
  const message =
    "failCgroupV1: the configuration names every field, as /configz does, and has the default of 1.34 here";
  expect(words).toContain(message);
  expect(words).toContain("kubelet is configured to not run on a host using cgroup v1");
  const kept = { cgroup: "1", kubelet: "1.35", change: "failCgroupV1: false" };
  expect(plain(await asked(app, { files: old, texts: kept }))).not.toContain("configured to not run on a host");
  expect(plain(await asked(app, { files: old, texts: { cgroup: "1", kubelet: "1.34" } }))).not.toContain(message);
});

test("the page says when the nearest or newest kubelet version answers", async () => {
  const { app } = appOver();
  const of = async (version: string): Promise<string> => {
    const files = CAPTURED.map(([name, text]) => [name, text.replaceAll("v1.36.3", version)] as const);
    return plain(await asked(app, { files, texts: { cgroup: "1", kubelet: "1.36" } }));
  };
  expect(await of("v1.33.13")).toContain("; kubelet 1.33 is not known here: 1.34 is the nearest that is.");
  expect(await of("")).toContain(
    `no kubelet version is given: ${NEWEST.version}, the newest that is known here, answers`,
  );
  expect(await of("v1.36.3")).not.toContain("known here");
});
