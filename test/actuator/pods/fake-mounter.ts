import type { Mounter } from "../../../actuator/pods/volumes/mounter.ts";
import { ok } from "../../../api/base/result.ts";

/** Mounts nothing, and records its calls. */
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
