import { podOf, SERVES } from "../pods/manifest.ts";

/** A folder of the machine that the pod mounts. */
export const HOST_FOLDER = "/srv/host";
/** The machine's only CPU: a command that is executed in the pod can use only the pod's resources. */
const OWN = { cpu: "1", memory: "32Mi" };
const LOOKS = [
  "echo word > /fast/file",
  "stat -c '%n %u:%g %a' /fast /fast/file /slow /slow/part",
  "awk '$2 == \"/fast\" { print $1, $3, $4 }' /proc/mounts",
  "cat /host/word",
  "echo part > /part/file && cat /slow/part/file",
  "id -G",
  "echo that is all",
];

/**
 * A pod with each kind of volume that needs a right of the daemon, and with its own user; the container first prints
 * what it sees.
 */
export const EVERY_VOLUME = podOf("web", {
  securityContext: { fsGroup: 1234, runAsUser: 1000, runAsGroup: 1000 },
  containers: [
    {
      script: `${LOOKS.join("; ")}; ${SERVES}`,
      requests: OWN,
      limits: OWN,
      volumeMounts: [
        { name: "fast", mountPath: "/fast" },
        { name: "slow", mountPath: "/slow" },
        { name: "slow", mountPath: "/part", subPath: "part" },
        { name: "host", mountPath: "/host", readOnly: true },
      ],
    },
  ],
  volumes: [
    { name: "fast", emptyDir: { medium: "Memory", sizeLimit: "4Mi" } },
    { name: "slow", emptyDir: {} },
    { name: "host", hostPath: { path: HOST_FOLDER, type: "Directory" } },
  ],
});
