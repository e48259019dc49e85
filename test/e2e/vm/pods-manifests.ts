import { podOf, SERVES } from "../pods/manifest.ts";
import { MOUNT, ROOT } from "./guest-node.ts";

/** Burstable: what its init container leaves in the volume its container finds; then it takes all the CPU it may. */
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
/** Guaranteed: the first that it does is to look what CPUs everybody has. */
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
