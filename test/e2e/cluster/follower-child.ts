import { resourceUsage } from "node:process";
import { fieldsOf } from "../../../api/base/own.ts";
import { openCluster } from "../../../api/cluster/cluster.ts";
import { followCluster } from "../../../api/cluster/follow.ts";

/** The messages of this process, one per line. */
export type FollowerMessage =
  | { readonly at: "listed"; readonly resource: string; readonly objects: number }
  | { readonly at: "change"; readonly change: string; readonly name: string }
  | { readonly at: "read"; readonly nodes: number; readonly pods: number; readonly missing: number }
  | { readonly at: "fault"; readonly resource: string; readonly code: string | null }
  | {
      readonly at: "usage";
      readonly rssMiB: number;
      readonly peakMiB: number;
      readonly cpuSeconds: number;
      /** Seconds since the start of the process. */
      readonly seconds: number;
    };

const send = (reported: FollowerMessage): boolean => process.stdout.write(`${JSON.stringify(reported)}\n`);
const MIB = 2 ** 20;
const usage = (): FollowerMessage => {
  const { maxRSS, userCPUTime, systemCPUTime } = resourceUsage();
  const cpuSeconds = (userCPUTime + systemCPUTime) / 1e6;
  return {
    at: "usage",
    rssMiB: process.memoryUsage.rss() / MIB,
    peakMiB: maxRSS / 1024,
    cpuSeconds,
    seconds: process.uptime(),
  };
};

/** Follows the cluster of a kubeconfig until standard input ends, and reads each node once per interval. */
const [kubeconfig = "", intervalMs = ""] = process.argv.slice(2);
const opened = await openCluster({ kubeconfig, env: {} });
if (!opened.ok) throw new Error(opened.error.message);
const controller = new AbortController();
process.stdin.resume().once("end", () => controller.abort());

const objects = new Map<string, number>();
const listed = new Set<string>();
const read = new Map<string, { readonly pods: number; readonly missing: number }>();
const sum = (of: (one: { readonly pods: number; readonly missing: number }) => number): number =>
  [...read.values()].reduce((total, one) => total + of(one), 0);
setInterval(() => {
  send({ at: "read", nodes: read.size, pods: sum(({ pods }) => pods), missing: sum(({ missing }) => missing) });
  send(usage());
}, 500).unref();

await followCluster(
  opened.value,
  { signal: controller.signal, intervalMs: Number(intervalMs) },
  {
    onChange: ({ resource, change, object }) => {
      objects.set(resource, (objects.get(resource) ?? 0) + (change === "added" ? 1 : change === "deleted" ? -1 : 0));
      // nodes change all the time
      if (listed.has(resource) && resource === "pods")
        send({ at: "change", change, name: String(fieldsOf(object["metadata"])["name"]) });
    },
    onListed: (resource) => {
      listed.add(resource);
      send({ at: "listed", resource, objects: objects.get(resource) ?? 0 });
    },
    onSnapshot: ({ name, pods, missing }) => {
      read.set(name, { pods: (fieldsOf(pods)["items"] as readonly unknown[]).length, missing: missing.length });
    },
    onFault: (resource, fault) => void send({ at: "fault", resource, code: fault?.code ?? null }),
  },
);
opened.value.close();
send(usage());
