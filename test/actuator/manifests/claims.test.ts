import { writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { actuatorConfig } from "../../../actuator/core/config.ts";
import { claimsSource } from "../../../actuator/manifests/claims-source.ts";
import { podsSource } from "../../../actuator/manifests/pods-source.ts";
import { readManifests } from "../../../actuator/manifests/read-manifests.ts";
import { err } from "../../../api/base/result.ts";
import { claim, result, slice } from "../../kit/claims.ts";
import { scratch } from "./scratch.ts";

/** An empty folder of manifests, and a function that writes files to it. */
function emptyDir() {
  const dir = scratch({});
  return { dir, write: (name: string, text: string): void => writeFileSync(join(dir, name), text) };
}

const head = (kind: string) => ({ apiVersion: "resource.k8s.io/v1", kind });
const claimed = (name: string, more: object = {}): object => ({
  ...head("ResourceClaim"),
  ...claim(name, [result("a")], ["p"]),
  ...more,
});
const pod = {
  apiVersion: "v1",
  kind: "Pod",
  metadata: { name: "p" },
  spec: { containers: [{ name: "c", image: "i" }] },
};
const settings = (more: object) => {
  const config = actuatorConfig({ stateDir: "/nowhere", nodeName: "n1", ...more });
  if (!config.ok) throw new Error(config.error);
  return config.value;
};

test("claims, slices and classes may stand beside pods, in documents and in lists", async () => {
  const { dir, write } = emptyDir();
  write("a.yaml", [pod, claimed("one")].map((one) => JSON.stringify(one)).join("\n---\n"));
  const { apiVersion: _, kind: __, ...bare } = claimed("two") as Record<string, unknown>;
  write("b.yaml", JSON.stringify({ ...head("ResourceClaimList"), items: [bare] }));
  const { metadata: ___, ...spec } = slice(["a"]);
  const items = [
    { ...head("ResourceSlice"), ...spec, metadata: { name: "s" } },
    { ...head("DeviceClass"), metadata: { name: "gpu" } },
  ];
  write("c.json", JSON.stringify({ apiVersion: "v1", kind: "List", items }));
  const { pods, claims, problems } = await readManifests(dir, "n1");
  expect(problems).toEqual([]);
  expect(pods.map(({ metadata }) => metadata.name)).toEqual(["p-n1"]);
  expect(
    Object.values(claims).map((list: readonly { metadata: { name: string } }[]) =>
      list.map((one) => one.metadata.name),
    ),
  ).toEqual([["one", "two"], ["s"], ["gpu"]]);
});

test("a claim without a uid gets one that stays while its devices do", async () => {
  const { dir, write } = emptyDir();
  const uidOf = async (device: string, pods: readonly string[]) => {
    const { status } = claim("one", [result(device)], pods);
    write("a.yaml", JSON.stringify({ ...head("ResourceClaim"), metadata: { name: "one" }, status }));
    const { claims } = await readManifests(dir, "n1");
    return claims.resourceClaims[0]?.metadata;
  };
  const first = await uidOf("a", ["p"]);
  expect(first).toMatchObject({ namespace: "default", uid: expect.stringMatching(/^[0-9a-f]{32}$/) });
  expect(await uidOf("a", ["p", "q"])).toEqual(first);
  expect((await uidOf("b", ["p"]))?.uid).not.toBe(first?.uid);
});

test("an invalid claim is reported with its place, the last valid ones stay, duplicates are refused", async () => {
  const { dir, write } = emptyDir();
  const lastGood = new Map();
  write("a.yaml", JSON.stringify(claimed("one")));
  write("b.yaml", JSON.stringify(claimed("one")));
  const twice = await readManifests(dir, "n1", lastGood);
  expect(twice.claims.resourceClaims).toHaveLength(1);
  expect(twice.problems).toMatchObject([
    {
      code: "duplicate",
      file: join(dir, "b.yaml"),
      message: `default/one is also in ${join(dir, "a.yaml")}, which counts: rename one`,
    },
  ]);
  write(
    "a.yaml",
    "apiVersion: resource.k8s.io/v1\nkind: ResourceClaim\nmetadata: {name: one}\nstatus:\n  reservedFor: [{name: p}]\n",
  );
  write("b.yaml", "apiVersion: resource.k8s.io/v1alpha3\nkind: ResourceClaim\nmetadata: {name: old}\n");
  const { claims, problems } = await readManifests(dir, "n1", lastGood);
  expect(claims.resourceClaims).toEqual(twice.claims.resourceClaims);
  expect(problems.map(({ code, place, message }) => [code, place?.line, message])).toEqual([
    ["invalid-claim", 5, expect.stringMatching(/^status\.reservedFor\[0\]\.uid: /)],
    ["invalid-claim", 1, "apiVersion: expected `resource.k8s.io/v1`, found `resource.k8s.io/v1alpha3`"],
    ["duplicate", 1, expect.stringMatching(/^default\/one is also in /)],
  ]);
});

test("claims of manifests come from the last reading", async () => {
  const { dir, write } = emptyDir();
  write("a.yaml", [pod, claimed("one")].map((one) => JSON.stringify(one)).join("\n---\n"));
  const config = settings({ manifests: dir });
  const read = await podsSource(config)();
  const found = await claimsSource(config, () => read.claims)("default", ["one", "none"]);
  expect(found.ok && [...found.value.keys()]).toEqual(["one"]);
});

test("claims of an API server are requested by name; a kubelet's endpoint has none", async () => {
  const asked: unknown[] = [];
  const server = createServer(({ url = "", headers }, response) => {
    asked.push([url, headers.authorization]);
    const name = url.split("/").at(-1);
    response.statusCode = name === "none" ? 404 : name === "secret" ? 403 : 200;
    response.end(JSON.stringify(claimed("one")));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => void server.close());
  const at = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const source = claimsSource(
    settings({ podsUrl: `${at}/api/v1/pods?fieldSelector=spec.nodeName=n1` }),
    () => undefined,
  );
  const found = await source("default", ["one", "none"]);
  expect(found.ok && [...found.value.keys()]).toEqual(["one"]);
  const path = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims";
  expect(asked).toEqual([
    [`${path}/one`, undefined],
    [`${path}/none`, undefined],
  ]);
  expect(await source("default", ["secret"])).toEqual(
    err(`fetch ResourceClaim secret: ${at}${path}/secret answered 403: check the token and its rights`),
  );
  const kubelet = claimsSource(settings({ podsUrl: `${at}/pods` }), () => undefined);
  expect(await kubelet("default", ["one"])).toMatchObject({
    error: expect.stringMatching(
      /^fetch ResourceClaim one: podsUrl is no API server's, which alone has ResourceClaims: set it to /,
    ),
  });
});
