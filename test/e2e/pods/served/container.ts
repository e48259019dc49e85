import { existsSync } from "node:fs";
import { dirname, join } from "node:path";

const ROOT = join(import.meta.dirname, "../../../..");
const NODE = dirname(process.execPath);
/** The directories of the libraries that Node's binary may need. */
const LIBRARIES = ["/lib", "/lib64", "/usr/lib", "/usr/lib64"];

/**
 * The volumes and the container of a pod that runs `server.ts` with the Node that runs the test; `served` is mounted as
 * /served.
 */
export function servedContainer(served: string, ...args: readonly string[]) {
  const places = [...new Set([ROOT, ...(NODE.startsWith(`${ROOT}/`) ? [] : [NODE]), ...LIBRARIES])].filter(existsSync);
  return {
    volumes: [
      ...places.map((path, i) => ({ name: `place-${i}`, hostPath: { path } })),
      { name: "served", hostPath: { path: served } },
    ],
    container: {
      command: [process.execPath, join(import.meta.dirname, "server.ts"), ...args],
      volumeMounts: [
        ...places.map((path, i) => ({ name: `place-${i}`, mountPath: path, readOnly: true })),
        { name: "served", mountPath: "/served" },
      ],
    },
  };
}
