import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, expect } from "vitest";
import { openHierarchy } from "../../actuator/cgroupfs/open.ts";
import { actuatorConfig } from "../../actuator/core/config.ts";
import type { ActuatorOptions } from "../../actuator/daemon/client-of.ts";
import { passOnce } from "../../actuator/main.ts";
import type { PassReport } from "../../actuator/pass/loop.ts";
import { scratchFolder } from "../kit/scratch.ts";

type Opened = ReturnType<typeof openHierarchy> & { readonly root: string };

/** A cgroup root that only this process uses, or the reason why there is none. */
export function openOwn(name: string): Opened {
  const root = `/nodewise-${name}-${process.pid}`;
  return { ...openHierarchy({ root }), root };
}

export const POD = (name: string, cpu: string, memory: string) => `
apiVersion: v1
kind: Pod
metadata: {name: ${name}}
spec:
  containers:
  - name: app
    image: app
    resources: {requests: {cpu: ${cpu}, memory: ${memory}}, limits: {cpu: ${cpu}, memory: ${memory}}}
`;

/**
 * Provides for each test a directory with `manifests` and an actuator that uses it; removes the cgroups after the test.
 */
export function ground(opened: Opened) {
  const { root } = opened;
  let dir: string;
  beforeEach(() => {
    dir = scratchFolder();
    mkdirSync(join(dir, "manifests"));
  });
  afterEach(async () => {
    if (!opened.ok) return;
    for (const path of opened.value.paths().toReversed()) await opened.value.remove(path);
  });
  const inDir = (...names: readonly string[]): string => join(dir, ...names);

  const options = (settings: Record<string, unknown> = {}): ActuatorOptions => {
    const config = actuatorConfig({
      mode: "enforce",
      stateDir: inDir("state"),
      manifests: inDir("manifests"),
      cgroupRoot: root,
      containers: "create",
      nodeName: "e2e",
      kubeletDir: inDir("no-kubelet"),
      ...settings,
    });
    if (!config.ok) throw new Error(config.error);
    return { config: config.value, onPass() {}, onProblem() {}, onRecovery() {} };
  };
  const pass = async (settings?: Record<string, unknown>): Promise<PassReport> => {
    const report = await passOnce(options(settings));
    if (!report.ok) throw new Error(report.error);
    expect(report.value.problems).toEqual([]);
    return report.value;
  };
  const manifest = (file: string, text: string): void => writeFileSync(inDir("manifests", file), text);
  const read = (path: string, file: string): string => {
    const text = opened.ok ? opened.value.read(path, file) : opened;
    return text.ok ? text.value : text.error.message;
  };
  return { root, inDir, options, pass, manifest, read };
}
