import { readFile } from "node:fs/promises";
import * as http from "node:http";
import * as https from "node:https";
import { resolve } from "node:path";
import { perObject } from "../../api/base/cache.ts";
import { certificateFault } from "../../api/base/certificate-fault.ts";
import { fieldsOf } from "../../api/base/own.ts";
import { podItems } from "../../api/documents/document-form.ts";
import { problemText, type ReadProblem } from "../../api/documents/problem.ts";
import { MIRROR_ANNOTATION } from "../../api/model/pod.ts";
import { pageField } from "../../api/model/snapshot.ts";
import type { ActuatorConfig } from "../core/config.ts";
import { faultText } from "../core/error-text.ts";
import type { ActivePods, PodOrigin, PodsRead } from "../core/interfaces.ts";
import type { LoopDeps } from "../pass/loop.ts";
import { type FoundPod, type PodObject, stepsOf } from "./pods-of.ts";
import { type LastGood, type Manifests, readManifests } from "./read-manifests.ts";

const SOURCE_ANNOTATION = "kubernetes.io/config.source";
const NONE_GONE = "no pod counts as gone";

/**
 * Why a pod list may be incomplete; null: it is complete. A v1.PodList may be one page of several. A kubelet that has
 * just started returns no pods, or those of its own files, until it has read from its API server. An API server shows
 * a static pod as its mirror, and gives each list a resourceVersion, which a kubelet's /pods and `kubectl get -o json`
 * do not have; with one, an empty list is complete. `isStandalone`: the kubelet has no API server, so it only ever has
 * pods of its own files; absent: not known.
 */
export function whyPartial(list: unknown, pods: readonly unknown[], isStandalone?: boolean): string | null {
  const page = pageField(list);
  if (page !== null) return `the list of pods is one page of several (metadata.${page} is set): ${NONE_GONE}`;
  const { resourceVersion } = fieldsOf(fieldsOf(list)["metadata"]);
  if (pods.length === 0 && isVersion(resourceVersion)) return null;
  if (pods.length === 0)
    return `the list of pods is empty: a kubelet that has just started answers so as well, ${NONE_GONE}`;
  if (isStandalone === true || !pods.every(isOnlyOfKubelet)) return null;
  const message = `the list of pods holds only a kubelet's own, none of an API server's: the API server's may not have arrived yet, ${NONE_GONE}`;
  const hint = "; of a kubelet that has no API server set standaloneKubelet (--standalone-kubelet)";
  return `${message}${isStandalone === false ? hint : ""}`;
}

/** `0` requests any version, and is not a version itself. */
const isVersion = (value: unknown): boolean => typeof value === "string" && value !== "" && value !== "0";

/**
 * Indexes of list items that are no pods at all. Such an item may stand for any of the node's pods, so the list does
 * not prove that a pod is gone.
 */
function namelessItems(items: readonly unknown[]): readonly string[] {
  return items.flatMap((item, index) => {
    const metadata = fieldsOf(fieldsOf(item)["metadata"]);
    const lacks = ["uid", "name"].filter((field) => typeof metadata[field] !== "string" || metadata[field] === "");
    return lacks.length === 0
      ? []
      : [`items[${index}] has no ${lacks.map((field) => `metadata.${field}`).join(" and no ")}: ${NONE_GONE}`];
  });
}

function isOnlyOfKubelet(pod: unknown): boolean {
  const annotations = fieldsOf(fieldsOf(fieldsOf(pod)["metadata"])["annotations"]);
  const source = annotations[SOURCE_ANNOTATION];
  return typeof source === "string" && source !== "api" && annotations[MIRROR_ANNOTATION] === undefined;
}

const MAX_BYTES = 32 * 1024 * 1024;
const TIMEOUT_MS = 10_000;

type ReadPods = LoopDeps["readPods"];

/** Reads pods like `podsSource`, with the configuration as it is at each call. */
export function livePodsSource(config: ActuatorConfig): ReadPods {
  let source: { readonly of: string; readonly read: ReadPods } | null = null;
  return (inForce) => {
    const of = JSON.stringify([config.manifests, config.manifestPods, config.podsUrl]);
    // cached pods of one directory do not apply to another
    if (source?.of !== of) source = { of, read: podsSource(config) };
    return source.read(inForce);
  };
}

/** Reads pods from the configured source; without a source, an empty list. */
export function podsSource(config: ActuatorConfig): ReadPods {
  const { manifests, podsUrl, nodeName, manifestPods } = config;
  if (manifests !== undefined) {
    const lastGood: LastGood = new Map();
    const as = manifestPods === "ordinary" ? ordinaryPod : (pod: PodObject) => pod;
    let known: ActivePods = new Map();
    return async (inForce = known) => {
      known = inForce;
      return fromManifests(await readManifests(manifests, nodeName, lastGood, inForce), resolve(manifests), as);
    };
  }
  if (podsUrl !== undefined) return () => fromUrl(podsUrl, config);
  return async () => ({ pods: [], whole: true, problems: [], notices: [] });
}

/** The kubelet skips these too; after any other problem pods may be missing. */
const isNotice = ({ code }: ReadProblem): boolean => code === "not-a-file" || code === "duplicate";

/** The pod as an ordinary API pod: neither critical nor protected. The result is cached by object. */
const ordinaryPod = perObject((pod: PodObject): PodObject => {
  const annotations = { ...(pod.metadata["annotations"] as object), [CONFIG_SOURCE]: "api" };
  return { ...pod, metadata: { ...pod.metadata, annotations } };
});
const CONFIG_SOURCE = "kubernetes.io/config.source";

function fromManifests(
  { found, claims, problems, kept }: Manifests,
  path: string,
  as: (pod: PodObject) => PodObject,
): PodsRead {
  const problemsOf = (list: readonly ReadProblem[]) =>
    list.map((p) => ({ from: "pods" as const, message: problemText(p) }));
  // an unreadable directory does not mean that there are no pods
  const unread = found.length === 0 && problems.some((p) => p.file === path);
  const faults = problems.filter((p) => !isNotice(p));
  const inForce = kept.map((file) => ({
    from: "pods" as const,
    message: `${file}: its last good version is in force`,
  }));
  const origins = new Map(found.map((one) => [as(one.pod), originOf(one)]));
  const unkept = faults.filter(({ code, file }) => code === "too-many" || !kept.includes(file));
  const isOfFiles = unkept.every(({ code, file }) => code !== "too-many" && file !== path);
  return {
    pods: unread ? null : [...origins.keys()],
    whole: unkept.length === 0,
    ...(isOfFiles && { unread: [...new Set(unkept.map(({ file }) => file))] }),
    origins,
    claims,
    undecoded: problems.flatMap(({ item }) => item ?? []),
    problems: problemsOf(faults),
    notices: [...problemsOf(problems.filter(isNotice)), ...inForce],
  };
}

const originOf = ({ source, at }: FoundPod): PodOrigin => ({
  file: source.file,
  nodeName: [...at, "spec", "nodeName"].reduce<unknown>((of, step) => (of as Fields | undefined)?.[step], source.value),
  place: (path) => source.place([...at, ...stepsOf(path)]),
});
type Fields = Readonly<Record<string | number, unknown>>;

/** The pods of a list, and the problem if it may be incomplete (`why`; null: it is complete). */
export const listedPods = (from: string, pods: readonly unknown[], why: string | null): PodsRead => ({
  pods,
  whole: why === null,
  problems: [],
  notices: why === null ? [] : [{ from: "pods", message: `${from}: ${why}` }],
});

/** Pods from an API. Objects without a name or uid are faults here, since an API's objects have both. */
function fromApi(url: string, items: readonly unknown[], why: string | null): PodsRead {
  const listed = listedPods(url, items, why);
  const nameless = namelessItems(items);
  if (nameless.length === 0) return listed;
  const more = nameless.length > MAX_NAMED ? [`and ${nameless.length - MAX_NAMED} more of them`] : [];
  const problems = [...nameless.slice(0, MAX_NAMED), ...more].map((message) => ({
    from: "pods" as const,
    message: `${url}: ${message}`,
  }));
  return { ...listed, whole: false, problems };
}
const MAX_NAMED = 5;

async function fromUrl(url: string, config: ActuatorConfig): Promise<PodsRead> {
  const failed = (message: string): PodsRead => ({
    pods: null,
    whole: false,
    problems: [{ from: "pods", message: `${url}: ${message}` }],
    notices: [],
  });
  try {
    const { status, text } = await getFrom(url, config);
    if (status !== 200) return failed(`answered ${status}, expected a v1.PodList: ${whatToDo(status)}`);
    const list: unknown = JSON.parse(text);
    const items = podItems(list);
    if (items === undefined) return failed("answered JSON without `items`: this is no v1.PodList");
    return fromApi(url, items, whyPartial(list, items, config.standaloneKubelet));
  } catch (e) {
    return failed(readFault(e));
  }
}
/** Why a server did not answer, and what to do. */
export const readFault = (e: unknown): string => certificateFault(e, KUBELETS_CERTIFICATE) ?? faultText(e, "read");

/** Requests `podsUrl` from its server. Throws Node's errors. */
export async function getFrom(
  url: string,
  { podsTokenFile, podsCaFile }: Pick<ActuatorConfig, "podsTokenFile" | "podsCaFile">,
): Promise<{ status: number; text: string }> {
  const token = podsTokenFile === undefined ? undefined : (await readFile(podsTokenFile, "utf8")).trim();
  const ca = podsCaFile === undefined ? undefined : await readFile(podsCaFile);
  return get(url, token, ca);
}

/** kubelet 1.36: InitializeTLS creates it if no certificate is configured, for the node's name. */
const KUBELETS_CERTIFICATE =
  "name the authority's certificate with podsCaFile (--pods-ca-file). A kubelet that signed its own has it in /var/lib/kubelet/pki/kubelet.crt; it is valid for the node's name only, so podsUrl must be https://NODE:10250/pods then, not an address";

export function whatToDo(status: number): string {
  if (status === 401 || status === 403) return "check the token and its rights";
  if (status === 404) return "check the path of podsUrl";
  if (status === 429 || status >= 500) return "a fault of that server, which is asked again; see its log if this stays";
  return "check podsUrl";
}

/** Makes the request with node:http, since `fetch` accepts no certificate authority per request. */
function get(
  url: string,
  token: string | undefined,
  ca: Buffer | undefined,
): Promise<{ status: number; text: string }> {
  const { request } = url.startsWith("https:") ? https : http;
  return new Promise((resolve, reject) => {
    const headers: Record<string, string> = { accept: "application/json" };
    if (token !== undefined) headers["authorization"] = `Bearer ${token}`;
    const options = { headers, signal: AbortSignal.timeout(TIMEOUT_MS), ...(ca === undefined ? {} : { ca }) };
    const sent = request(url, options, (response) => {
      const status = response.statusCode ?? 0;
      // the rest of the answer is not read
      if (status !== 200) {
        response.destroy();
        return resolve({ status, text: "" });
      }
      const tooLong = new Error(`answers more than ${MAX_BYTES} bytes`);
      const chunks: Buffer[] = [];
      let size = 0;
      response.on("data", (chunk: Buffer) => {
        chunks.push(chunk);
        size += chunk.length;
        if (size > MAX_BYTES) response.destroy(tooLong);
      });
      response.on("error", reject);
      if (Number(response.headers["content-length"] ?? 0) > MAX_BYTES) response.destroy(tooLong);
      response.on("end", () => resolve({ status, text: Buffer.concat(chunks).toString("utf8") }));
    });
    sent.on("error", reject);
    sent.end();
  });
}
