import { err, ok, type Result } from "../../api/base/result.ts";
import { decodeSnapshot } from "../../api/model/decode.ts";
import type { ResourceClaim } from "../../api/model/resource-claim.ts";
import type { ActuatorConfig } from "../core/config.ts";
import type { NodeClaims } from "../core/interfaces.ts";
import { getFrom, readFault, whatToDo } from "./pods-source.ts";

type ClaimsResult = Result<ReadonlyMap<string, ResourceClaim>, string>;
type Config = Pick<ActuatorConfig, "manifests" | "podsUrl" | "podsTokenFile" | "podsCaFile">;

/**
 * The source of pods' ResourceClaims: the manifests beside the pods, as last read (`ofFiles`), or the API server that
 * lists the pods. Errors: the first claim that could not be looked up, and why.
 */
export const claimsSource =
  (config: Config, ofFiles: () => NodeClaims | undefined) =>
  async (namespace: string, names: readonly string[]): Promise<ClaimsResult> => {
    const { podsUrl } = config;
    if (podsUrl === undefined) {
      const claims = ofFiles()?.resourceClaims ?? [];
      const here = claims.filter(({ metadata }) => metadata.namespace === namespace && names.includes(metadata.name));
      return ok(new Map(here.map((claim) => [claim.metadata.name, claim])));
    }
    const asked = await Promise.all(names.map((name) => fromApi(podsUrl, config, namespace, name)));
    const found = new Map<string, ResourceClaim>();
    for (const [i, claim] of asked.entries()) {
      const name = names[i] as string;
      if (!claim.ok) return err(`fetch ResourceClaim ${name}: ${claim.error}`);
      if (claim.value !== null) found.set(name, claim.value);
    }
    return ok(found);
  };

const CORE = "/api/v1/";
const NO_API =
  "podsUrl is no API server's, which alone has ResourceClaims: set it to the API server's list of the node's pods, " +
  "https://HOST:6443/api/v1/pods?fieldSelector=spec.nodeName=NODE";

/** Reads a claim; null: the API server has none of this name. */
async function fromApi(
  podsUrl: string,
  config: Config,
  namespace: string,
  name: string,
): Promise<Result<ResourceClaim | null, string>> {
  const url = new URL(podsUrl);
  const root = url.pathname.indexOf(CORE);
  if (root < 0) return err(NO_API);
  const [space, claim] = [namespace, name].map(encodeURIComponent);
  url.pathname = `${url.pathname.slice(0, root)}/apis/resource.k8s.io/v1/namespaces/${space}/resourceclaims/${claim}`;
  url.search = "";
  try {
    const { status, text } = await getFrom(url.href, config);
    if (status === 404) return ok(null);
    if (status !== 200) return err(`${url.href} answered ${status}: ${whatToDo(status)}`);
    const decoded = decodeSnapshot({ dra: { resourceClaims: [JSON.parse(text)] } });
    if (decoded.ok) return ok(decoded.value.dra?.resourceClaims?.[0] ?? null);
    const [first] = decoded.error;
    return err(`${url.href} answered no ResourceClaim: ${first?.path}: ${first?.message}`);
  } catch (error) {
    return err(`${url.href}: ${readFault(error)}`);
  }
}
