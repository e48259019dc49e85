import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { describe, expect, test } from "vitest";
import {
  allocatableResources,
  alphaPodResources,
  podResources,
  podResourcesOf,
} from "../../../actuator/podresources/server.ts";
import { goBuilt } from "../../kit/go-built.ts";
import { FULL, listIn, serving } from "./served.ts";

/**
 * Builds the client once, or reports why it cannot be built here. If the client's modules are installed, its build must
 * succeed.
 */
function clientIn(folder: string): { readonly program: string } | { readonly missing: string } {
  const built = goBuilt(join(import.meta.dirname, folder));
  if ("missing" in built) console.warn(`skipped the ${folder} of the podresources API: ${built.missing}`);
  return built;
}
const client = clientIn("go-client");
const oldClient = clientIn("old-go-client");
const programOf = (built: ReturnType<typeof clientIn>): string => ("program" in built ? built.program : "");

/** A value in protojson's format: no empty lists, 64-bit numbers as text. */
const asJson = (value: unknown): unknown => {
  if (Array.isArray(value)) return value.map(asJson);
  if (typeof value !== "object" || value === null) return typeof value === "number" ? String(value) : value;
  const kept = Object.entries(value).filter(([, v]) => v !== 0 && !(Array.isArray(v) && v.length === 0));
  return Object.fromEntries(kept.map(([key, v]) => [key, asJson(v)]));
};

describe.skipIf("missing" in client)("a Go program with the kubelet's own types", () => {
  test.each(["url", "dialer"])(
    "reads every field and the error of each call (%s)",
    async (way) => {
      const { path } = await serving();
      const { stdout } = await promisify(execFile)(programOf(client), [way, path, "default", "a"]);
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

describe.skipIf("missing" in oldClient)("a Go program with grpc-go 1.38, which sends a path as :authority", () => {
  test("gets an answer to its first and its second call", async () => {
    const { path } = await serving();
    const { stdout } = await promisify(execFile)(programOf(oldClient), [path]);
    const messages = stdout.trim().split("\n");
    expect(messages.map((bytes) => listIn(Buffer.from(bytes, "base64")))).toEqual([
      podResources(FULL),
      podResources(FULL),
    ]);
  }, 300_000);
});
