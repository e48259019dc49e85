import { podOf, SERVES } from "../pods/manifest.ts";

/** Where the pod finds something of the machine's. */
export const HOST_FOLDER = "/srv/host";
/** All that the machine has: what starts in a pod has no more than the pod. */
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

/** Each kind of volume that the daemon needs a right for, and a user of its own; the first that it does is to look. */
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
