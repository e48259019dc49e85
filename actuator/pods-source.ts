import { readFile } from "node:fs/promises";
import { resolve } from "node:path";
import type { ActuatorConfig } from "./config.ts";
import { http, https } from "./http.ts";
import { podItems } from "./manifests/pod-items.ts";
import { type FoundPod, stepsOf } from "./manifests/pods-of.ts";
import { problemText, type ReadProblem } from "./manifests/problem.ts";
import { type LastGood, type Manifests, readManifests } from "./manifests/read-manifests.ts";
import type { PodObject } from "./manifests/static-pod.ts";
import { namelessItems, whyPartial } from "./partial-pods.ts";
import type { LoopPorts, PodOrigin, PodsInForce, PodsRead } from "./ports.ts";

const MOST_BYTES = 32 * 1024 * 1024;
const TIMEOUT_MS = 10_000;

type ReadPods = LoopPorts["readPods"];

/** As `podsSource`, of the configuration as it is at each call. */
export function livePodsSource(config: ActuatorConfig): ReadPods {
  let source: { readonly of: string; readonly read: ReadPods } | null = null;
  return (inForce) => {
    const of = JSON.stringify([config.manifests, config.manifestPods, config.podsUrl]);
    // what is remembered of one directory says nothing about another
    if (source?.of !== of) source = { of, read: podsSource(config) };
    return source.read(inForce);
  };
}

/** Where the configuration says that pods come from; none at all is an empty list. */
export function podsSource(config: ActuatorConfig): ReadPods {
  const { manifests, podsUrl, nodeName, manifestPods } = config;
  if (manifests !== undefined) {
    const lastGood: LastGood = new Map();
    const as = manifestPods === "ordinary" ? ordinaryPods() : (pod: PodObject) => pod;
    let known: PodsInForce = new Map();
    return async (inForce = known) => {
      known = inForce;
      return fromManifests(await readManifests(manifests, nodeName, lastGood, inForce), resolve(manifests), as);
    };
  }
  if (podsUrl !== undefined) return () => fromUrl(podsUrl, config);
  return async () => ({ pods: [], whole: true, problems: [], notices: [] });
}

/** What the kubelet passes over as well; after any other problem pods may be missing. */
const isNotice = ({ code }: ReadProblem): boolean => code === "not-a-file" || code === "duplicate";

/** As pods of an API server: neither critical nor spared. One that is read again is the same object. */
function ordinaryPods(): (pod: PodObject) => PodObject {
  const known = new WeakMap<PodObject, PodObject>();
  return (pod) => {
    const annotations = { ...(pod.metadata["annotations"] as object), [CONFIG_SOURCE]: "api" };
    const ordinary = known.get(pod) ?? { ...pod, metadata: { ...pod.metadata, annotations } };
    known.set(pod, ordinary);
    return ordinary;
  };
}
const CONFIG_SOURCE = "kubernetes.io/config.source";

function fromManifests(
  { found, problems, kept }: Manifests,
  path: string,
  as: (pod: PodObject) => PodObject,
): PodsRead {
  const told = (list: readonly ReadProblem[]) => list.map((p) => ({ from: "pods" as const, message: problemText(p) }));
  // A directory that cannot be read at all says nothing about which pods there are.
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
    undecoded: problems.flatMap(({ item }) => item ?? []),
    problems: told(faults),
    notices: [...told(problems.filter(isNotice)), ...inForce],
  };
}

const originOf = ({ source, at }: FoundPod): PodOrigin => ({
  file: source.file,
  nodeName: [...at, "spec", "nodeName"].reduce<unknown>((of, step) => (of as Fields | undefined)?.[step], source.value),
  place: (path) => source.place([...at, ...stepsOf(path)]),
});
type Fields = Readonly<Record<string | number, unknown>>;

/** Pods of a list, with what is told of one that cannot hold all of them (`why`; null: it can). */
export const listedPods = (from: string, pods: readonly unknown[], why: string | null): PodsRead => ({
  pods,
  whole: why === null,
  problems: [],
  notices: why === null ? [] : [{ from: "pods", message: `${from}: ${why}` }],
});

/** As a person or a tool never writes them: each object of an API's has a name and a uid. */
function fromApi(url: string, items: readonly unknown[], why: string | null): PodsRead {
  const listed = listedPods(url, items, why);
  const nameless = namelessItems(items);
  if (nameless.length === 0) return listed;
  const more = nameless.length > MOST_NAMED ? [`and ${nameless.length - MOST_NAMED} more of them`] : [];
  const problems = [...nameless.slice(0, MOST_NAMED), ...more].map((message) => ({
    from: "pods" as const,
    message: `${url}: ${message}`,
  }));
  return { ...listed, whole: false, problems };
}
const MOST_NAMED = 5;

async function fromUrl(url: string, config: ActuatorConfig): Promise<PodsRead> {
  const failed = (message: string): PodsRead => ({
    pods: null,
    whole: false,
    problems: [{ from: "pods", message: `${url}: ${message}` }],
    notices: [],
  });
  try {
    const token =
      config.podsTokenFile === undefined ? undefined : (await readFile(config.podsTokenFile, "utf8")).trim();
    const ca = config.podsCaFile === undefined ? undefined : await readFile(config.podsCaFile);
    const { status, text } = await get(url, token, ca);
    if (status !== 200) return failed(`answered ${status}, expected a v1.PodList: ${whatToDo(status)}`);
    const list: unknown = JSON.parse(text);
    const items = podItems(list);
    if (items === undefined) return failed("answered JSON without `items`: this is no v1.PodList");
    return fromApi(url, items, whyPartial(list, items));
  } catch (e) {
    return failed((e as Error).message);
  }
}

function whatToDo(status: number): string {
  if (status === 401 || status === 403) return "check the token and its rights";
  if (status === 404) return "check the path of podsUrl";
  if (status === 429 || status >= 500) return "a fault of that server, which is asked again; see its log if this stays";
  return "check podsUrl";
}

/** `fetch` takes no certificate authority of its own, so the request is made by hand. */
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
      const chunks: Buffer[] = [];
      let size = 0;
      response.on("data", (chunk: Buffer) => {
        chunks.push(chunk);
        size += chunk.length;
        if (size > MOST_BYTES) response.destroy(new Error(`answers more than ${MOST_BYTES} bytes`));
      });
      response.on("error", reject);
      response.on("end", () =>
        resolve({ status: response.statusCode ?? 0, text: Buffer.concat(chunks).toString("utf8") }),
      );
    });
    sent.on("error", reject);
    sent.end();
  });
}
