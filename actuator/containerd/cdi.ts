import { err, ok } from "../../api/model/result.ts";
import type { Connection } from "./connection.ts";
import type { ContainerConfig, TextMap } from "./messages.ts";
import type { Answered } from "./port.ts";
import { runtimeVersion } from "./readiness.ts";

/**
 * Whether a container may be made with the CDI devices that it is to have. containerd before 1.7 leaves them out without a
 * word, and so does a later one whose configuration has them off, as 1.7's own defaults have: either is a fault of
 * CreateContainer, by their names. Other runtimes are taken at their word. Asks nothing for a container without any.
 */
export async function cdiServed(
  connection: Pick<Connection, "call">,
  { CDIDevices = [] }: Pick<ContainerConfig, "CDIDevices">,
): Answered<null> {
  if (CDIDevices.length === 0) return ok(null);
  const [version, status] = await Promise.all([
    runtimeVersion(connection),
    connection.call("Status", { verbose: true }),
  ]);
  if (!version.ok) return version;
  if (!status.ok) return status;
  if (version.value.name !== "containerd") return ok(null);
  const why = whyNot(version.value.version, status.value.info);
  if (why === null) return ok(null);
  const message = `CDI devices (${CDIDevices.map(({ name }) => name).join(", ")}): containerd ${version.value.version} ${why}`;
  return err({ call: "CreateContainer", code: "FAILED_PRECONDITION", message });
}

function whyNot(version: string, info: TextMap): string | null {
  const isOn = enableCdi(info);
  // 2.3 tells null for its default, later ones have no such option: on in both
  if (isOn ?? isSinceCdi(version)) return null;
  return isOn === false
    ? "has them off: set `enable_cdi = true` in its config.toml"
    : "does not know them, and would start the container without: 1.7 does";
}

/** Undefined: it does not tell. */
function enableCdi({ config = "null" }: TextMap): boolean | undefined {
  try {
    const told = (JSON.parse(config) as { readonly enableCDI?: unknown } | null)?.enableCDI;
    return typeof told === "boolean" ? told : undefined;
  } catch {
    return undefined;
  }
}

/** `1.7.27`, `v2.1.4`, `1.6.20~ds1`; one that cannot be read is not. */
function isSinceCdi(version: string): boolean {
  const [, major, minor] = /^v?(\d+)\.(\d+)\b/.exec(version) ?? [];
  return Number(major) > 1 || (Number(major) === 1 && Number(minor) >= 7);
}
