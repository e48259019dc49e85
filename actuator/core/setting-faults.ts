import { hostname } from "node:os";
import { join } from "node:path";
import type * as z from "zod";
import { nearName } from "../../api/base/near-name.ts";
import type { Fields } from "../../api/base/own.ts";
import { isLoopback, parseListen } from "./addresses.ts";
import { redacted } from "./error-text.ts";
import type { Problem } from "./interfaces.ts";

/** The kubelet's default directory. */
export const KUBELET_DIRECTORY = "/var/lib/kubelet";

/** A valid node name for an API server: the kubelet's static pods contain it in their names. Kubernetes: NameIsDNSSubdomain. */
export const NODE_NAME = /^(?=.{1,253}$)[a-z0-9](?:[a-z0-9-]*[a-z0-9])?(?:\.[a-z0-9](?:[a-z0-9-]*[a-z0-9])?)*$/;
export const NODE_NAME_FORM =
  "must be a node's name as Kubernetes takes it: lower-case letters, digits, `-` and `.`, at most 253, such as node-1";
/** The cgroups that a kubelet makes below its root, with the cgroupfs and the systemd driver; with the latter they begin with the root's name. */
const KUBELETS_CGROUP = /^(?:kubepods(?:-[^/]*)?(?:\.slice)?|[^/]+-kubepods(?:-[^/]*)?\.slice)$/;

/** Settings with which this daemon and a kubelet would work on the same objects, whatever the mode. */
export function dangerFaults(settings: Fields): readonly SettingFault[] {
  const { cgroupRoot, podsDirectory, nodeName, pods, kubeletDir = KUBELET_DIRECTORY } = settings;
  const faults: SettingFault[] = [];
  const theirs = String(cgroupRoot ?? "")
    .split("/")
    .find((name) => KUBELETS_CGROUP.test(name));
  if (theirs !== undefined) {
    const message = `\`${theirs}\` is a kubelet's own tree: name a cgroup of its own, such as /nodewise; \`/\` with mode observe compares a kubelet's`;
    faults.push({ setting: "cgroupRoot", message });
  }
  const kubeletsPods = join(String(kubeletDir), "pods");
  if (`${podsDirectory}/`.startsWith(`${kubeletsPods}/`)) {
    const message = `a kubelet removes from ${kubeletsPods} what is of no pod of its own: name another directory, such as /var/lib/nodewise/pods`;
    faults.push({ setting: "podsDirectory", message });
  }
  const host = hostname().toLowerCase();
  if (pods === "enforce" && nodeName === undefined && !NODE_NAME.test(host)) {
    const message = `must be set, since the host's name, \`${host}\`, is none that Kubernetes takes: lower-case letters, digits, \`-\` and \`.\``;
    faults.push({ setting: "nodeName", message });
  }
  return faults;
}

/** Warns of settings that are allowed and seldom meant. */
export function settingWarnings(config: Fields): readonly Problem[] {
  const { statusListen, podsUrl, api } = config;
  const warnings: string[] = [];
  const listen = typeof statusListen === "string" ? parseListen(statusListen) : null;
  if (listen?.ok && listen.value !== null && !isLoopback(listen.value.host))
    warnings.push(
      `statusListen: ${statusListen} answers every client that reaches this machine, without a token: pods, events and metrics. Listen on 127.0.0.1 or [::1], and let a proxy with a certificate ask there`,
    );
  const sent = { podsTokenFile: podsUrl, podsCaFile: podsUrl, apiTokenFile: api };
  for (const [setting, url] of Object.entries(sent)) {
    if (config[setting] === undefined) continue;
    const target = setting.startsWith("pods") ? "podsUrl" : "api";
    if (url === undefined) warnings.push(`${setting}: it has no effect without \`${target}\``);
    else if (setting === "podsCaFile" && !isHttps(url))
      warnings.push(`${setting}: ${target} is not https, so no certificate is checked`);
    else if (
      setting !== "podsCaFile" &&
      !isHttps(url) &&
      !isLoopback(new URL(String(url)).hostname.replace(/^\[|\]$/g, ""))
    )
      warnings.push(`${setting}: ${target} is not https, so the token crosses the network in plain text`);
  }
  return warnings.map((message) => ({ from: "settings", message }));
}
const isHttps = (url: unknown): boolean => String(url).startsWith("https:");

/** A fault of one setting, in one line. */
export interface SettingFault {
  readonly setting: string;
  readonly message: string;
}
const LONGEST_VALUE = 60;

/** One text per issue: the setting, the allowed values and the given value. `names`: the existing settings. */
export const faultsOf = (
  issues: readonly z.core.$ZodIssue[],
  settings: Fields,
  names: readonly string[],
): readonly SettingFault[] =>
  issues.flatMap((issue) => {
    if (issue.code === "unrecognized_keys")
      return issue.keys.map((key) => ({ setting: key, message: unknown(key, names) }));
    const setting = String(issue.path[0] ?? "settings");
    const value = settings[setting];
    if (value === undefined) return [{ setting, message: "must be set" }];
    return [{ setting, message: `${allowed(issue)}, not ${shown(value)}${hintOf(value)}` }];
  });

function unknown(name: string, names: readonly string[]): string {
  const near = nearName(name, names);
  return near === null ? "no such setting" : `no such setting; ${near}?`;
}

function allowed(issue: z.core.$ZodIssue): string {
  switch (issue.code) {
    case "invalid_value":
      return `must be ${issue.values.map(String).join(" or ")}`;
    case "invalid_type":
      return `must be ${KIND_OF[issue.expected] ?? issue.expected}`;
    case "too_small":
      return issue.origin === "string" ? "must not be empty" : `must be at least ${issue.minimum}`;
    case "too_big":
      return issue.origin === "string" ? `may have ${issue.maximum} characters` : `must be at most ${issue.maximum}`;
    case "invalid_format":
      return issue.format === "url" ? "must be an address such as https://node-1:10250/pods" : issue.message;
    default:
      return issue.message;
  }
}
const KIND_OF: Readonly<Record<string, string>> = {
  number: "a number",
  int: "a whole number",
  string: "a text",
  boolean: "true or false",
};

/** A hint for a setting that is no switch. */
const hintOf = (value: unknown): string =>
  typeof value === "boolean" ? " (which YAML makes of yes, no, y, n, on and off: quote a text)" : "";

function shown(value: unknown): string {
  if (value === null) return "empty";
  const text = redacted(typeof value === "string" ? value : JSON.stringify(value));
  const cut = text.length > LONGEST_VALUE ? `${text.slice(0, LONGEST_VALUE)}…` : text;
  // a text that looks like a number was quoted
  return typeof value === "string" ? `the text \`${cut}\`` : `\`${cut}\``;
}
