import { podOf, SERVES } from "../pods/manifest.ts";
import { MOUNT, ROOT } from "./guest-node.ts";

/**
 * Burstable: the container uses a word that the init container left in their shared volume, and then all the CPU that
 * it may use.
 */
export const BUSY = podOf("busy", {
  initContainers: [
    {
      name: "first",
      script: "echo left by the first > /shared/word",
      requests: { cpu: "50m", memory: "16Mi" },
      limits: { cpu: "500m", memory: "32Mi" },
      volumeMounts: [{ name: "shared", mountPath: "/shared" }],
    },
  ],
  containers: [
    {
      script: "cat /shared/word; while :; do :; done",
      requests: { cpu: "100m", memory: "32Mi" },
      limits: { cpu: "100m", memory: "64Mi" },
      volumeMounts: [{ name: "shared", mountPath: "/shared" }],
    },
  ],
  volumes: [{ name: "shared", emptyDir: {} }],
  terminationGracePeriodSeconds: 1,
});
export const IDLE = podOf("idle");
/** Guaranteed: the container first prints the CPUs of all pods. */
const OWN = { cpu: "2", memory: "64Mi" };
export const ALONE = podOf("alone", {
  containers: [
    {
      script: `cd /cgroups; for f in $(find . -name cpuset.cpus); do echo "$f $(cat $f)"; done; echo that is all; ${SERVES}`,
      requests: OWN,
      limits: OWN,
      volumeMounts: [{ name: "cgroups", mountPath: "/cgroups", readOnly: true }],
    },
  ],
  volumes: [{ name: "cgroups", hostPath: { path: MOUNT + ROOT } }],
});
