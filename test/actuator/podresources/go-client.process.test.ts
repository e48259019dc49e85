import { execFile, spawnSync } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { describe, expect, test } from "vitest";
import {
  allocatableResources,
  alphaPodResources,
  podResources,
  podResourcesOf,
} from "../../../actuator/podresources/server.ts";
import { scratchFolder } from "../../kit/scratch.ts";
import { FULL, listIn, serving } from "./served.ts";

const CLIENT = "go-client";
const OLD_CLIENT = "old-go-client";
const out = scratchFolder();
const go = (client: string, ...args: readonly string[]) =>
  spawnSync("go", args, {
    cwd: join(import.meta.dirname, client),
    encoding: "utf8",
    timeout: 120_000,
    env: { ...process.env, GOTOOLCHAIN: "local" },
  });

/** Why the client cannot be built here, said once; undefined: it can. A client that has its modules must build. */
function whyNo(client: string): string | undefined {
  const version = go(client, "version");
  if (version.error !== undefined) return "there is no Go toolchain";
  const modules = go(client, "mod", "download");
  return modules.status === 0 ? undefined : `its modules cannot be had: ${modules.stderr.trim().split("\n").at(-1)}`;
}
const why = whyNo(CLIENT);
const whyNoOld = why ?? whyNo(OLD_CLIENT);
for (const [client, reason] of Object.entries({ [CLIENT]: why, [OLD_CLIENT]: whyNoOld })) {
  if (reason !== undefined) console.warn(`skipped the ${client} of the podresources API: ${reason}`);
}
/** Builds a client, without a word of the compiler. */
function built(client: string): string {
  const binary = join(out, client);
  const { stderr } = go(client, "build", "-o", binary, ".");
  expect(stderr.replace(/^go: downloading .*$/gm, "").trim()).toBe("");
  return binary;
}

/** As protojson writes it: no empty lists, numbers of 64 bits as text. */
const asJson = (value: unknown): unknown => {
  if (Array.isArray(value)) return value.map(asJson);
  if (typeof value !== "object" || value === null) return typeof value === "number" ? String(value) : value;
  const kept = Object.entries(value).filter(([, v]) => v !== 0 && !(Array.isArray(v) && v.length === 0));
  return Object.fromEntries(kept.map(([key, v]) => [key, asJson(v)]));
};

describe.skipIf(why !== undefined)("a Go program with the kubelet's own types", () => {
  test.each(["url", "dialer"])(
    "reads every field, and the errors (%s)",
    async (way) => {
      const binary = built(CLIENT);
      const { path } = await serving();
      const { stdout } = await promisify(execFile)(binary, [way, path, "default", "a"]);
      const found = podResourcesOf(FULL, { podNamespace: "default", podName: "a" });
      expect(JSON.parse(stdout)).toEqual({
        list: asJson(podResources(FULL)),
        allocatable: asJson(allocatableResources(FULL)),
        get: asJson(found.ok && found.value),
        alpha: asJson(alphaPodResources(FULL)),
        missing: { code: "Unknown", message: "pod none in namespace default not found" },
      });
    },
    300_000,
  );
});

describe.skipIf(whyNoOld !== undefined)("a Go program with grpc-go 1.38, which sends a path as :authority", () => {
  test("is answered, the second time too", async () => {
    const binary = built(OLD_CLIENT);
    const { path } = await serving();
    const { stdout } = await promisify(execFile)(binary, [path]);
    const messages = stdout.trim().split("\n");
    expect(messages.map((bytes) => listIn(Buffer.from(bytes, "base64")))).toEqual([
      podResources(FULL),
      podResources(FULL),
    ]);
  }, 300_000);
});
