import { createHash } from "node:crypto";
import { fieldsOf } from "../../api/base/own.ts";
import { err, ok, type Result } from "../../api/base/result.ts";
import type { ReadProblem, SourceDocument } from "../../api/documents/problem.ts";
import { decodeSnapshot } from "../../api/model/decode.ts";
import type { ResourceClaim } from "../../api/model/resource-claim.ts";
import type { NodeClaims } from "../core/interfaces.ts";
import { stepsOf } from "./pods-of.ts";

const API_VERSION = "resource.k8s.io/v1";
/** Kind -> the part of a snapshot's `dra` that contains its objects. */
const PARTS = {
  ResourceClaim: "resourceClaims",
  ResourceSlice: "resourceSlices",
  DeviceClass: "deviceClasses",
} as const;
type Part = (typeof PARTS)[keyof typeof PARTS];

export interface FoundClaim {
  readonly objects: Partial<NodeClaims>;
  readonly source: SourceDocument;
}

/** Whether a value is an object of these kinds, or a list of them; its version may be wrong. */
export const isOfClaims = (value: unknown): boolean => {
  const { apiVersion, kind } = fieldsOf(value);
  return (
    String(apiVersion).startsWith("resource.k8s.io/") &&
    /^(ResourceClaim|ResourceSlice|DeviceClass)(List)?$/.test(String(kind))
  );
};

/** The claims, slices and classes of one document, or of a list. Error: what is wrong with an item, and where. */
export function claimsOf(source: SourceDocument): readonly Result<FoundClaim, ReadProblem>[] {
  const { kind, items } = fieldsOf(source.value);
  if (!Array.isArray(items)) return isOfClaims(source.value) ? [claimOf(source, source.value, [])] : [];
  // items of a ResourceClaimList need not repeat their kind
  const ofList = /^(ResourceClaim|ResourceSlice|DeviceClass)List$/.exec(String(kind))?.[1];
  const { apiVersion } = fieldsOf(source.value);
  return items.flatMap((item: unknown, i) => {
    const object = ofList === undefined ? item : { apiVersion, kind: ofList, ...fieldsOf(item) };
    return isOfClaims(object) ? [claimOf(source, object, ["items", i])] : [];
  });
}

function claimOf(
  source: SourceDocument,
  value: unknown,
  at: readonly (string | number)[],
): Result<FoundClaim, ReadProblem> {
  const { apiVersion, kind } = fieldsOf(value);
  const refused = (path: readonly (string | number)[], message: string): Result<never, ReadProblem> => {
    const { file, document } = source;
    return err({ code: "invalid-claim", file, document, place: source.place([...at, ...path]), message });
  };
  if (apiVersion !== API_VERSION) {
    return refused(["apiVersion"], `apiVersion: expected \`${API_VERSION}\`, found \`${String(apiVersion)}\``);
  }
  const part = PARTS[kind as keyof typeof PARTS];
  const decoded = decodeSnapshot({ dra: { [part]: [value] } });
  if (decoded.ok) {
    const { resourceClaims, ...others } = decoded.value.dra ?? {};
    const claims = resourceClaims && { resourceClaims: resourceClaims.map(withIdentity) };
    return ok({ objects: { ...(others as FoundClaim["objects"]), ...claims }, source });
  }
  const [first] = decoded.error;
  const path = (first?.path ?? "").replace(`dra.${part}[0]`, "").replace(/^\./, "");
  return refused(stepsOf(path), `${path}: ${first?.message ?? "is refused"}`);
}

/**
 * The claim as an API server would store it: with a namespace and a uid, which changes when other devices are
 * allocated.
 */
function withIdentity(claim: ResourceClaim): ResourceClaim {
  const { namespace = "default", name, uid } = claim.metadata;
  const text = JSON.stringify([namespace, name, claim.status?.allocation]);
  const made = uid ?? createHash("md5").update(text).digest("hex");
  return { ...claim, metadata: { ...claim.metadata, namespace, uid: made } };
}

/** Joins all claims of a folder; if two have one kind and name, the first counts and the other is a problem. */
export function joinClaims(found: readonly FoundClaim[]): { claims: NodeClaims; problems: readonly ReadProblem[] } {
  const claims: Record<Part, NodeClaims[Part][number][]> = {
    resourceClaims: [],
    resourceSlices: [],
    deviceClasses: [],
  };
  const files = new Map<string, string>();
  const problems: ReadProblem[] = [];
  for (const { objects, source } of found) {
    for (const [part, list = []] of Object.entries(objects) as [Part, NodeClaims[Part]][]) {
      for (const object of list) {
        const name = [object.metadata.namespace, object.metadata.name].filter(Boolean).join("/");
        const twin = files.get(`${part} ${name}`);
        if (twin === undefined) {
          files.set(`${part} ${name}`, source.file);
          claims[part].push(object);
          continue;
        }
        const { file, document } = source;
        const message = `${name} is also in ${twin}, which counts: rename one`;
        problems.push({ code: "duplicate", file, document, place: source.place([]), message });
      }
    }
  }
  return { claims: claims as NodeClaims, problems };
}
