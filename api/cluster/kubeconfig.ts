import { spawn } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { homedir } from "node:os";
import { delimiter, dirname, isAbsolute, join } from "node:path";
import { nearNames } from "../base/near-name.ts";
import { type Fields, fieldsOf, isObject } from "../base/own.ts";
import { ok, type Result } from "../base/result.ts";
import { parseDocuments } from "../documents/parse.ts";
import { problemText } from "../documents/problem.ts";
import { type ClusterFault, clusterFault } from "./fault.ts";
import { IdToken } from "./id-token.ts";
import type { KubeConfig } from "./kube-client.ts";

export interface KubeconfigOptions {
  /** The only file, like `kubectl --kubeconfig`; absent: KUBECONFIG, ~/.kube/config, or this pod's service account. */
  readonly kubeconfig?: string | undefined;
  /** Absent for the file's current-context. */
  readonly context?: string | undefined;
  /** Overrides those of the context. */
  readonly cluster?: string | undefined;
  readonly user?: string | undefined;
  /** Absent for the impersonation in the kubeconfig, if any. */
  readonly as?: string | undefined;
  readonly asGroups?: readonly string[] | undefined;
  readonly env: Readonly<Record<string, string | undefined>>;
}

/** A context of a kubeconfig with everything that its requests need. */
export interface Kubeconfig {
  readonly context: string;
  /** The namespace of the context. */
  readonly namespace: string;
  readonly config: KubeConfig;
  /** The user's exec plugin; undefined if there is none. */
  readonly exec: Fields | undefined;
  /** The ID token from the user's identity provider; undefined if there is none. */
  readonly idToken: IdToken | undefined;
  /** The impersonation headers; empty if the user acts as itself. */
  readonly impersonation: Readonly<Record<string, string | readonly string[]>>;
}

const SERVICE_ACCOUNT = "/var/run/secrets/kubernetes.io/serviceaccount";
/** The context name for the service account of this process's pod, used without a kubeconfig. */
const IN_CLUSTER = "in-cluster";

/**
 * The context of a kubeconfig, found and merged as kubectl does: of several files the first that defines a name counts, and
 * missing files of KUBECONFIG are skipped. client-go: ClientConfigLoadingRules. Errors: no-kubeconfig, bad-kubeconfig,
 * unknown-context.
 */
export async function loadKubeconfig(options: KubeconfigOptions): Promise<Result<Kubeconfig, ClusterFault>> {
  const { kubeconfig, env } = options;
  const files = kubeconfigFiles(options);
  const found = kubeconfig === undefined ? files.filter((file) => existsSync(file)) : files;
  const { KubeConfig: Config } = await import("./kube-client.ts");
  const config = new Config();
  if (found.length === 0) {
    const isInCluster = env["KUBERNETES_SERVICE_HOST"] !== undefined && existsSync(join(SERVICE_ACCOUNT, "token"));
    if (!isInCluster) return noKubeconfig(files);
    const { context = IN_CLUSTER } = options;
    if (context !== IN_CLUSTER) return unknownContext(context, [IN_CLUSTER], "a pod without a kubeconfig");
    config.loadFromCluster();
    const { namespace = "default" } = config.getContexts()[0] ?? {};
    return ok({ context: IN_CLUSTER, namespace, config, exec: undefined, idToken: undefined, impersonation: {} });
  }
  const merged = mergedFiles(found);
  if (!merged.ok) return merged;
  return contextOf(config, merged.value, options, found);
}

function kubeconfigFiles({ kubeconfig, env }: KubeconfigOptions): readonly string[] {
  if (kubeconfig !== undefined) return [kubeconfig];
  const listed = (env["KUBECONFIG"] ?? "").split(delimiter).filter((file) => file !== "");
  return listed.length > 0 ? [...new Set(listed)] : [join(env["HOME"] ?? homedir(), ".kube/config")];
}

const noKubeconfig = (files: readonly string[]) =>
  clusterFault(
    "no-kubeconfig",
    `there is no kubeconfig (${files.join(", ")}), and this process runs in no pod of a cluster`,
    "give --kubeconfig FILE, or set KUBECONFIG",
  );

interface Merged {
  readonly clusters: Fields[];
  readonly users: Fields[];
  readonly contexts: Fields[];
  currentContext: string | undefined;
}
const LISTS = ["clusters", "users", "contexts"] as const;

function mergedFiles(files: readonly string[]): Result<Merged, ClusterFault> {
  const merged: Merged = { clusters: [], users: [], contexts: [], currentContext: undefined };
  for (const file of files) {
    const read = readFile(file);
    if (!read.ok) return read;
    for (const list of LISTS) {
      const items = Array.isArray(read.value[list]) ? (read.value[list] as readonly unknown[]) : [];
      for (const item of items.filter(isObject)) {
        if (merged[list].some(({ name }) => name === item["name"])) continue;
        merged[list].push(withAbsolutePaths(item, dirname(file)));
      }
    }
    const current = read.value["current-context"];
    if (typeof current === "string" && current !== "") merged.currentContext ??= current;
  }
  return ok(merged);
}

function readFile(file: string): Result<Fields, ClusterFault> {
  let text: string;
  try {
    text = readFileSync(file, "utf8");
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    const why = code === "ENOENT" ? "no such file" : `cannot be read (${code})`;
    return clusterFault(code === "ENOENT" ? "no-kubeconfig" : "bad-kubeconfig", `${file}: ${why}`, "check the path");
  }
  const { documents, problems } = parseDocuments(text, file);
  const [problem] = problems;
  if (problem !== undefined) return clusterFault("bad-kubeconfig", problemText(problem), "correct the file");
  const value = documents[0]?.value ?? {};
  if (isObject(value) && (value["kind"] ?? "Config") === "Config") return ok(value);
  return clusterFault("bad-kubeconfig", `${file}: is no kubeconfig (kind: Config)`, "give --kubeconfig FILE");
}

const PATHS: ReadonlySet<string> = new Set([
  ...["certificate-authority", "client-certificate", "client-key", "tokenFile", "idp-certificate-authority"],
]);
const NESTED: ReadonlySet<string> = new Set(["exec", "auth-provider", "config"]);
/** Resolves the paths in a kubeconfig relative to its folder, also an exec plugin's command that contains a slash. */
function withAbsolutePaths(item: Fields, folder: string): Fields {
  const absolute = (name: string, value: unknown): unknown => {
    if (typeof value !== "string" || value === "" || isAbsolute(value)) return value;
    return PATHS.has(name) || (name === "command" && value.includes("/")) ? join(folder, value) : value;
  };
  const inner = (value: unknown): unknown => {
    if (!isObject(value)) return value;
    const entries = Object.entries(value).map(([name, one]) => [
      name,
      NESTED.has(name) ? inner(one) : absolute(name, one),
    ]);
    return Object.fromEntries(entries) as Fields;
  };
  return Object.fromEntries(Object.entries(item).map(([name, value]) => [name, inner(value)]));
}

function contextOf(
  config: KubeConfig,
  merged: Merged,
  asked: KubeconfigOptions,
  files: readonly string[],
): Result<Kubeconfig, ClusterFault> {
  const { clusters, users, contexts, currentContext } = merged;
  const name = asked.context ?? currentContext;
  const named = (list: readonly Fields[], of: unknown): Fields | undefined => list.find((one) => one["name"] === of);
  const context: Fields = {
    ...fieldsOf(named(contexts, name)?.["context"]),
    ...(asked.cluster === undefined ? {} : { cluster: asked.cluster }),
    ...(asked.user === undefined ? {} : { user: asked.user }),
  };
  const place = files.join(", ");
  if (name === undefined || named(contexts, name) === undefined) {
    return unknownContext(
      name,
      contexts.map((one) => String(one["name"])),
      place,
    );
  }
  const cluster = named(clusters, context["cluster"]);
  const user = named(users, context["user"]);
  const missing = cluster === undefined ? "cluster" : user === undefined && context["user"] ? "user" : undefined;
  if (missing !== undefined && asked[missing] !== undefined) return unknownPart(missing, merged, asked, place);
  if (missing !== undefined) {
    const message = `${place}: context ${name} names the ${missing} ${String(context[missing])}, which is not there`;
    return clusterFault("bad-kubeconfig", message, "correct the file, or use another context with --context");
  }
  const { exec, tokenFile, "auth-provider": provider, ...rest } = fieldsOf(user?.["user"]);
  const { name: providerName, config: oidc } = fieldsOf(provider);
  if (providerName !== undefined && providerName !== "oidc") {
    const message = `${place}: context ${name}: kubectl has had no auth-provider ${String(providerName)} since 1.26`;
    return clusterFault(
      "bad-kubeconfig",
      message,
      "let the cloud's tool write the kubeconfig again, with an exec plugin",
    );
  }
  const ownUser = typeof tokenFile === "string" ? { ...rest, "auth-provider": byFile(tokenFile) } : rest;
  try {
    config.loadFromString(
      JSON.stringify({
        clusters: [{ name: "cluster", cluster: withoutShadowed(fieldsOf(cluster?.["cluster"])) }],
        users: [{ name: "user", user: withoutShadowed(ownUser) }],
        contexts: [{ name, context: { ...context, cluster: "cluster", user: "user" } }],
        "current-context": name,
      }),
    );
  } catch (error) {
    return clusterFault("bad-kubeconfig", `${place}: context ${name}: ${(error as Error).message}`, "correct the file");
  }
  const namespace = typeof context["namespace"] === "string" ? context["namespace"] : "default";
  const plugin = isObject(exec) ? withExecInfo(exec) : undefined;
  return ok({
    context: name,
    namespace: namespace || "default",
    config,
    exec: plugin,
    idToken: isObject(oidc) ? new IdToken(oidc) : undefined,
    impersonation: actsAs(asked.as === undefined ? rest : { as: asked.as, "as-groups": asked.asGroups }),
  });
}

function unknownPart(part: "cluster" | "user", merged: Merged, asked: KubeconfigOptions, place: string) {
  const known = merged[`${part}s`].map((one) => String(one["name"]));
  const list = known.length === 0 ? "it has none" : `its ${part}s are ${known.join(", ")}`;
  const [near] = nearNames(asked[part] ?? "", known, 1);
  const next = near === undefined ? list : `is ${near} meant? ${list}`;
  return clusterFault("unknown-context", `${place} has no ${part} ${asked[part]}`, next);
}

function unknownContext(name: string | undefined, known: readonly string[], place: string) {
  const list = known.length === 0 ? "it has none" : `its contexts are ${known.join(", ")}`;
  if (name === undefined)
    return clusterFault("unknown-context", `${place} sets no current-context`, `give --context NAME; ${list}`);
  const [near] = nearNames(name, known, 1);
  const next = near === undefined ? list : `is ${near} meant? ${list}`;
  return clusterFault("unknown-context", `${place} has no context ${name}`, next);
}

/** If a certificate is given both as data and as a path, the data counts, as for kubectl. */
const withoutShadowed = (fields: Fields): Fields =>
  Object.fromEntries(Object.entries(fields).filter(([name]) => !fields[`${name}-data`]));

const byFile = (tokenFile: string): Fields => ({ name: "tokenFile", config: { tokenFile } });

function actsAs(user: Fields): Kubeconfig["impersonation"] {
  const { as, "as-uid": uid, "as-groups": groups } = user;
  return {
    ...(typeof as === "string" && as !== "" ? { "Impersonate-User": as } : {}),
    ...(typeof uid === "string" && uid !== "" ? { "Impersonate-Uid": uid } : {}),
    ...(Array.isArray(groups) && groups.length > 0 ? { "Impersonate-Group": groups.map(String) } : {}),
  };
}

/** Adds what kubectl passes to each plugin about the credentials request; some do not work without it. client-go: exec.Authenticator. */
function withExecInfo(exec: Fields): Fields {
  const { apiVersion, env } = exec;
  const value = JSON.stringify({ kind: "ExecCredential", apiVersion, spec: { interactive: false } });
  return { ...exec, env: [...(Array.isArray(env) ? env : []), { name: "KUBERNETES_EXEC_INFO", value }] };
}

/** A plugin that waits for input, or hangs, must not block the caller. */
const PLUGIN_TIMEOUT_MS = 60_000;

/** Starts a plugin for client-node, with a timeout. */
export const spawnPlugin: typeof spawn = ((command: string, args: readonly string[], options: object) =>
  spawn(command, args ?? [], {
    ...options,
    stdio: ["ignore", "pipe", "pipe"],
    timeout: PLUGIN_TIMEOUT_MS,
  })) as typeof spawn;
