import type { Result } from "../../api/model/result.ts";
import { kubeletText } from "../containerd/fault.ts";
import type { SandboxConfig } from "../containerd/messages.ts";
import { sandboxConfigOf } from "../lifecycle/config/sandbox-config.ts";
import { makeDirectory } from "./container-logs.ts";
import { dnsOf } from "./dns.ts";
import type { SyncTurn } from "./sync.ts";

export interface Sandbox {
  readonly id: string;
  /** Empty on the host's network. */
  readonly ips: readonly string[];
  readonly config: SandboxConfig;
}

/** What the runtime is asked for, and what it is told again with each container. Error: the kubelet's words. */
export function sandboxConfig(turn: SyncTurn, attempt: number): Result<SandboxConfig, string> {
  return configWithDns(turn, attempt, false);
}

function configWithDns(turn: SyncTurn, attempt: number, isTold: boolean): Result<SandboxConfig, string> {
  const { ports, pod, places, events } = turn;
  const { hostIPs, clusterDNS, clusterDomain, resolvConf } = ports.node();
  const dns = dnsOf(pod, { clusterDNS, clusterDomain, host: resolvConf, nodeIps: hostIPs });
  if (isTold) for (const { reason, message } of dns.events) events.warning(reason, message);
  return sandboxConfigOf(pod, {
    owner: ports.owner,
    attempt,
    logDirectory: places.logDirectory,
    cgroupParent: ports.cgroupParentOf(pod),
    dns: dns.conf,
    clusterDomain,
  });
}

/**
 * Makes the pod's sandbox and asks the runtime for its addresses. A text: why there is none, which was told as an event.
 * kubelet 1.36: createPodSandbox.
 */
export async function makeSandbox(turn: SyncTurn, attempt: number): Promise<Sandbox | string> {
  const { ports, pod, places, runtime, events } = turn;
  const failed = (why: string): string => {
    const message = `Failed to create pod sandbox: ${why}`;
    events.warning("FailedCreatePodSandBox", message);
    return message;
  };
  const config = configWithDns(turn, attempt, true);
  if (!config.ok) return failed(config.error);
  const logs = makeDirectory(places.logDirectory);
  if (!logs.ok) return failed(logs.error);
  const made = await runtime.runSandbox(config.value);
  if (!made.ok) return failed(kubeletText(made.error));
  const sandbox = { id: made.value, ips: [], config: config.value };
  if (pod.spec.hostNetwork) return sandbox;
  const pods = await ports.runtime.pods();
  const found = pods.ok ? pods.value.get(pod.uid)?.sandboxes.find(({ id }) => id === made.value) : undefined;
  if (found !== undefined) return { ...sandbox, ips: found.ips };
  const message = `Unable to get pod sandbox status: ${pods.ok ? "it is not there" : kubeletText(pods.error)}`;
  events.warning("FailedPodSandBoxStatus", message);
  return message;
}
