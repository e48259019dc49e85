import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { onTestFinished } from "vitest";
import type { PodContainer, PodSpec, RunnablePod } from "../../../actuator/lifecycle/pod.ts";
import { type Mounter, parseMountPoints } from "../../../actuator/pods/volumes/mounter.ts";
import { ok } from "../../../api/model/result.ts";
import { PLAIN_CONTAINER, PLAIN_SPEC } from "./plain-pod.ts";

/** Only root may mount, and give files to others. */
export const isRoot = process.getuid?.() === 0;
if (!isRoot) console.warn("skipped what pods' directories need of mounts: only root can mount");

/** A directory that goes with the test, and before it whatever is mounted below. */
export function scratch(): string {
  const directory = mkdtempSync(join(tmpdir(), "actuator-pods-"));
  onTestFinished(() => {
    for (const point of mountsBelow(directory).toReversed()) execFileSync("/bin/umount", [point]);
    rmSync(directory, { recursive: true, force: true });
  });
  return directory;
}
export const mountsBelow = (directory: string): readonly string[] =>
  parseMountPoints(readFileSync("/proc/self/mountinfo", "utf8")).flatMap(({ point }) =>
    point.startsWith(`${directory}/`) ? [point] : [],
  );

/** Mounts nothing, and remembers what it was asked for. */
export class FakeMounter implements Mounter {
  readonly asked: string[] = [];
  readonly points: { point: string; type: string }[] = [];
  mounts() {
    return ok(this.points);
  }
  async tmpfs(point: string, options: readonly string[]) {
    this.asked.push(`tmpfs ${point} ${options.join(",")}`);
    this.points.push({ point, type: "tmpfs" });
    return ok(null);
  }
  async bind(_fd: number, point: string) {
    this.asked.push(`bind ${point}`);
    this.points.push({ point, type: "ext4" });
    return ok(null);
  }
  async unmount(point: string) {
    this.asked.push(`unmount ${point}`);
    this.points.splice(
      this.points.findIndex((one) => one.point === point),
      1,
    );
    return ok(null);
  }
}

export const container = (name: string, more: Partial<PodContainer> = {}): PodContainer => ({
  ...PLAIN_CONTAINER,
  name,
  image: "busybox",
  ...more,
});

export const pod = (spec: Partial<PodSpec> = {}, more: Partial<RunnablePod> = {}): RunnablePod => ({
  namespace: "default",
  name: "web",
  uid: "uid-1",
  labels: { app: "web" },
  annotations: {},
  isStatic: true,
  deletion: null,
  object: {},
  spec: { ...PLAIN_SPEC, containers: [container("app")], ...spec },
  ...more,
});
