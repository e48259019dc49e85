import { err, map } from "../../api/model/result.ts";
import type { Answered, PluginCall, PluginFault } from "./fault.ts";
import type { PluginInfo } from "./messages.ts";
import { SUPPORTED_VERSIONS } from "./messages.ts";
import { quoted, resourceFault, toldEndpoint } from "./names.ts";
import { callOnce, dial } from "./plugin-client.ts";
import type { WatcherOptions } from "./watcher.ts";

/** A plugin that is registered and was told so. */
export interface Introduced {
  readonly resource: string;
  readonly generation: number;
}
export interface Introduction extends Pick<WatcherOptions, "register" | "leave"> {
  /** Of the socket where the plugin tells who it is. */
  readonly path: string;
  readonly signal: AbortSignal;
}

/** kubelet 1.36: dialTimeoutDuration, notifyTimeoutDuration; GetInfo has a second. */
const DIAL_MS = 10_000;
const INFO_MS = 1_000;
const NOTIFY_MS = 5_000;
const TYPE = "DevicePlugin";

/**
 * Asks a plugin who it is, registers it, and tells it what came of that: the fault that the node answers with is what the
 * plugin hears. kubelet 1.36: GenerateRegisterPluginFunc, ValidatePlugin.
 */
export async function introduce({ path, register, leave, signal }: Introduction): Answered<Introduced> {
  const of = (call: string, resource = ""): PluginCall => ({ resource, endpoint: path, call });
  const calling = { of: of("GetInfo"), timeoutMs: INFO_MS, signal };
  const dialed = await dial(calling, DIAL_MS, "/pluginregistration.Registration/GetInfo", {});
  if (!dialed.ok) return dialed;
  const { client, answer } = dialed.value;
  const notify = (pluginRegistered: boolean, error: string) =>
    callOnce(
      client,
      { of: of("NotifyRegistrationStatus", answer.name), timeoutMs: NOTIFY_MS, signal },
      "/pluginregistration.Registration/NotifyRegistrationStatus",
      { pluginRegistered, error },
    );
  try {
    const refused = async (message: string, fault: Partial<PluginFault> = {}): Answered<Introduced> => {
      const told = `RegisterPlugin error -- ${message}`;
      await notify(false, told);
      return err({ ...of("Register", quoted(answer.name).slice(1, -1)), code: "REFUSED", ...fault, message: told });
    };
    if (answer.type !== TYPE) {
      return await refused(
        `no handler registered for plugin type: ${quoted(answer.type).slice(1, -1)} at socket ${path}`,
      );
    }
    const endpoint = toldEndpoint(answer.endpoint, path);
    const wrong = validationFault(answer) ?? (endpoint.ok ? undefined : endpoint.error);
    if (wrong !== undefined || !endpoint.ok) return await refused(`plugin validation failed with err: ${wrong}`);
    const registered = await register(answer.name, endpoint.value);
    if (!registered.ok) {
      const { code, message } = registered.error;
      return await refused(`plugin registration failed with err: ${message}`, { code, endpoint: endpoint.value });
    }
    const told = await notify(true, "");
    if (!told.ok) leave(answer.name, registered.value);
    return map(told, () => ({ resource: answer.name, generation: registered.value }));
  } finally {
    client.close();
  }
}

function validationFault({ name, supportedVersions }: PluginInfo): string | undefined {
  if (!supportedVersions.some((version) => SUPPORTED_VERSIONS.includes(version))) {
    const versions = supportedVersions.slice(0, MOST_VERSIONS).map((v) => quoted(v).slice(1, -1));
    return `manager version, ${SUPPORTED_VERSIONS.at(-1)}, is not among plugin supported versions [${versions.join(" ")}]`;
  }
  const fault = resourceFault(name);
  return fault === undefined ? undefined : `invalid name of device plugin socket: ${fault}`;
}
const MOST_VERSIONS = 16;
