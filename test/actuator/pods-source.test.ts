import { spawnSync } from "node:child_process";
import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { createServer as createTlsServer } from "node:https";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { actuatorConfig } from "../../actuator/core/config.ts";
import type { PodsRead } from "../../actuator/core/interfaces.ts";
import { podsSource } from "../../actuator/manifests/pods-source.ts";
import { podYaml } from "../kit/manifests.ts";
import { pod } from "../kit/pods.ts";
import { scratch } from "./manifests/scratch.ts";

type Settings = Parameters<typeof actuatorConfig>[0];

function sourceOf(settings: Settings): () => Promise<PodsRead> {
  const config = actuatorConfig({ ...settings, nodeName: "n", stateDir: "unused" });
  if (!config.ok) throw new Error(config.error);
  return podsSource(config.value);
}
const namesOf = ({ pods, whole }: PodsRead) => ({
  whole,
  names: pods?.map((pod) => (pod as { metadata: { name: string } }).metadata.name) ?? null,
});

describe("reading a directory of manifests repeatedly", () => {
  test("keeps all pods of a file while it is broken, and takes its content once it is corrected", async () => {
    const manifests = scratch({
      "a.yaml": `${podYaml("a1")}---\n${podYaml("a2")}`,
      "b.yaml": podYaml("b"),
    });
    const file = join(manifests, "a.yaml");
    const read = sourceOf({ manifests });
    const all = { whole: true, names: ["a1-n", "a2-n", "b-n"] };
    expect(namesOf(await read())).toEqual(all);
    writeFileSync(file, `${podYaml("a3")}---\nkind: [\n`);
    const broken = await read();
    expect(namesOf(broken)).toEqual(all);
    expect(broken.problems.length).toBe(1);
    expect(broken.notices.map((n) => n.message)).toEqual([`${file}: its last good version is in force`]);
    writeFileSync(file, podYaml("a3"));
    const mended = await read();
    expect(namesOf(mended)).toEqual({ whole: true, names: ["a3-n", "b-n"] });
    expect(mended.notices).toEqual([]);
  });

  test("is incomplete while a broken file has never been read", async () => {
    const manifests = scratch({ "a.yaml": "{half", "b.yaml": podYaml("b") });
    const read = sourceOf({ manifests });
    expect(namesOf(await read())).toEqual({ whole: false, names: ["b-n"] });
  });

  test("forgets a removed file, so that a broken one of the same name counts as unread", async () => {
    const manifests = scratch({ "a.yaml": podYaml("a"), "b.yaml": podYaml("b") });
    const read = sourceOf({ manifests });
    await read();
    rmSync(join(manifests, "a.yaml"));
    expect(namesOf(await read())).toEqual({ whole: true, names: ["b-n"] });
    writeFileSync(join(manifests, "a.yaml"), "{half");
    expect(namesOf(await read())).toEqual({ whole: false, names: ["b-n"] });
  });
});

async function answered(answer: unknown, status = 200, more: Settings = {}): Promise<PodsRead> {
  const server = createServer((_request, response) => void response.writeHead(status).end(JSON.stringify(answer)));
  onTestFinished(() => void server.close());
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  return sourceOf({ podsUrl: `http://127.0.0.1:${port}/pods`, ...more })();
}

test.each([
  ["a list of Go's that was never filled", { kind: "PodList", items: null }, [], false],
  ["an empty list", { kind: "PodList", items: [] }, [], false],
  ["a list without its kind", { items: [{ metadata: { name: "a", uid: "u" } }] }, ["a"], true],
  ["null without a kind", { items: null }, null, false],
  ["no list", { kind: "Status", items: null }, null, false],
  ["no object", null, null, false],
])("a URL that answers %s gives the expected pods", async (_, answer, names, whole) => {
  expect(namesOf(await answered(answer))).toEqual({ whole, names });
});

test.each([
  [401, "check the token and its rights"],
  [403, "check the token and its rights"],
  [404, "check the path of podsUrl"],
  [302, "check podsUrl"],
  [429, "a fault of that server, which is asked again; see its log if this stays"],
  [500, "a fault of that server, which is asked again; see its log if this stays"],
  [503, "a fault of that server, which is asked again; see its log if this stays"],
])("a URL that answers %i gives no pods, and a problem that says what to do", async (status, whatToDo) => {
  const { pods, whole, problems } = await answered({ kind: "PodList", items: [] }, status);
  expect([pods, whole]).toEqual([null, false]);
  expect(problems.map(({ message }) => message)).toEqual([
    expect.stringMatching(new RegExp(`/pods: answered ${status}, expected a v1\\.PodList: ${whatToDo}$`)),
  ]);
});

const SOURCE = "kubernetes.io/config.source";
const MIRROR = "kubernetes.io/config.mirror";
const podWith = (annotations: object) => pod("a", { metadata: { annotations } });
const listOf = (items: readonly object[], metadata: object = {}) => ({ kind: "PodList", metadata, items });
const PLAIN = pod("a");

test.each([
  ["is empty", listOf([]), "is empty"],
  ["is empty and of no version", listOf([], { resourceVersion: "" }), "is empty"],
  ["is empty as kubectl writes it", listOf([], { resourceVersion: "0" }), "is empty"],
  ["is empty and an API server's", listOf([], { resourceVersion: "1235" }), null],
  ["is an API server's, empty, one page", listOf([], { resourceVersion: "1", continue: "x" }), "metadata.continue is"],
  ["has another page", listOf([PLAIN], { continue: "x" }), "metadata.continue is set"],
  ["leaves some out", listOf([PLAIN], { continue: "", remainingItemCount: 3 }), "metadata.remainingItemCount is set"],
  ["is of a kubelet's files", listOf([podWith({ [SOURCE]: "file" }), podWith({ [SOURCE]: "http" })]), "kubelet's own"],
  ["is the only page", listOf([PLAIN], { continue: "", remainingItemCount: 0 }), null],
  ["is a kubelet's that has heard", listOf([podWith({ [SOURCE]: "file" }), podWith({ [SOURCE]: "api" })]), null],
  ["holds a mirror pod", listOf([podWith({ [SOURCE]: "file", [MIRROR]: "x" })]), null],
  ["holds a pod of no source", listOf([podWith({ [SOURCE]: "file" }), PLAIN]), null],
])(
  "a pod list that %s is complete only if nothing can be missing, with a notice and no problem otherwise",
  async (_, list, words) => {
    const { whole, problems, notices } = await answered(list);
    expect([whole, problems]).toEqual([words === null, []]);
    expect(notices.map(({ message }) => message)).toEqual(words === null ? [] : [expect.stringContaining(words)]);
  },
);

test.each([
  ["an empty object", {}, "no metadata.uid and no metadata.name"],
  ["no object", null, "no metadata.uid and no metadata.name"],
  ["empty metadata", { metadata: {} }, "no metadata.uid and no metadata.name"],
  ["no uid", { metadata: { name: "b" } }, "no metadata.uid"],
  ["a number for a name", { metadata: { name: 7, uid: "v" } }, "no metadata.name"],
])("a pod list with %s among its items is incomplete, and the problem names the item", async (_, item, lacks) => {
  const { pods, whole, problems } = await answered(listOf([PLAIN, item as object], { resourceVersion: "1" }));
  expect([pods?.length, whole]).toEqual([2, false]);
  expect(problems.map(({ message }) => message)).toEqual([
    expect.stringContaining(`/pods: items[1] has ${lacks}: no pod counts as gone`),
  ]);
});
test("of many invalid items the first are reported, with the number of the others", async () => {
  const { problems } = await answered(listOf(Array.from({ length: 9 }, () => ({}))));
  expect([problems.length, problems.at(-1)?.message]).toEqual([6, expect.stringContaining("and 4 more of them")]);
});

describe("a standalone kubelet", () => {
  const ofFiles = listOf([podWith({ [SOURCE]: "file" }), podWith({ [SOURCE]: "http" })]);
  const standalone = { standaloneKubelet: true };

  test("has only its static pods where standaloneKubelet is set", async () => {
    const { whole, notices } = await answered(ofFiles, 200, standalone);
    expect([whole, notices]).toEqual([true, []]);
  });
  test("is reported with the setting's name where it is not set", async () => {
    const { whole, notices } = await answered(ofFiles);
    expect([whole, notices.map(({ message }) => message)]).toEqual([
      false,
      [expect.stringContaining("no pod counts as gone; of a kubelet that has no API server set standaloneKubelet")],
    ]);
  });
  test("gives an incomplete list while it is empty or one page of several", async () => {
    expect((await answered(listOf([]), 200, standalone)).whole).toBe(false);
    expect((await answered({ ...ofFiles, metadata: { continue: "x" } }, 200, standalone)).whole).toBe(false);
  });
  test("requires podsUrl", () => {
    const checked = actuatorConfig({ nodeName: "n", stateDir: "unused", ...standalone });
    expect(checked.ok ? "" : checked.error).toMatch(/^standaloneKubelet: .*set podsUrl to its \/pods/);
  });
});

test("the body of an error response is not read", async () => {
  const { problems } = await answered("x".repeat(40 * 2 ** 20), 503);
  expect(problems.map(({ message }) => message)).toEqual([
    expect.stringContaining("answered 503, expected a v1.PodList"),
  ]);
});

test("an oversized list is refused", async () => {
  const { pods, problems } = await answered({ kind: "PodList", items: [], words: "x".repeat(33 * 2 ** 20) });
  expect([pods, problems.map(({ message }) => message)]).toEqual([
    null,
    [expect.stringMatching(/answers more than 33554432 bytes/)],
  ]);
});

describe("a kubelet with a self-signed certificate", () => {
  const made = spawnSync("openssl", ["version"]).status === 0;
  test.skipIf(!made)(
    "is reported with what to do, also for an address it is not for, and is read with its certificate",
    async () => {
      const dir = scratch({});
      const [key, cert] = [join(dir, "kubelet.key"), join(dir, "kubelet.crt")];
      const names = ["-subj", "/CN=n1@1700000000", "-addext", "subjectAltName=DNS:localhost"];
      const args = [
        "req",
        "-x509",
        "-newkey",
        "rsa:2048",
        "-nodes",
        "-days",
        "2",
        "-keyout",
        key,
        "-out",
        cert,
        ...names,
      ];
      expect(spawnSync("openssl", args).status).toBe(0);
      const server = createTlsServer({ key: readFileSync(key), cert: readFileSync(cert) }, (_request, response) =>
        response.end(JSON.stringify(listOf([PLAIN]))),
      );
      onTestFinished(() => void server.close());
      await new Promise<void>((resolve) => server.listen(0, "localhost", resolve));
      const { port } = server.address() as AddressInfo;
      const reportOf = async (settings: Settings) =>
        (await sourceOf(settings)()).problems.map(({ message }) => message);
      const podsUrl = `https://localhost:${port}/pods`;
      expect(await reportOf({ podsUrl })).toEqual([
        expect.stringMatching(
          /self-signed, or of an authority that is not known \(DEPTH_ZERO_SELF_SIGNED_CERT\): .*podsCaFile.*kubelet\.crt/,
        ),
      ]);
      expect(await reportOf({ podsUrl, podsCaFile: cert })).toEqual([]);
      const byAddress = { podsUrl: podsUrl.replace("localhost", "127.0.0.1"), podsCaFile: cert };
      expect(await reportOf(byAddress)).toEqual([
        expect.stringMatching(/its certificate is for DNS:localhost and not for this address: ask by/),
      ]);
    },
  );
});
