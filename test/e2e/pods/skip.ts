import { openHierarchy } from "../../../actuator/cgroupfs/open.ts";
import { whyNoContainerd } from "../containerd/start.ts";

/** Why pods cannot be run here, printed once; undefined: they can. In CI they must run. */
export function noPods(what: string): string | undefined {
  const why = whyNoContainerd() ?? whyNoCgroups();
  if (why === undefined) return undefined;
  if (process.env["CI"] === "true") throw new Error(`CI must run ${what}: ${why}`);
  console.warn(`skipped ${what} end to end: ${why}`);
  return why;
}

function whyNoCgroups(): string | undefined {
  const opened = openHierarchy({ root: `/nodewise-none-${process.pid}` });
  if (!opened.ok) return opened.error.message;
  return opened.value.version === 1 ? undefined : "no cgroup v1 is mounted";
}
