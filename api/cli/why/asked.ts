import { ok, type Result } from "../../model/result.ts";
import { WORKLOADS, type Workload } from "../../service/why/workload.ts";
import { EXIT, type Fault, fault } from "../terminal.ts";

/** Whom a story is asked of; both null: of all pods. */
export interface Asked {
  /** NAME, NAMESPACE/NAME or a uid. */
  readonly pod: string | null;
  readonly workload: Workload | null;
}

const POD: readonly string[] = ["po", "pod", "pods"];
/** Types of which users ask, and what answers instead. */
const OTHERS: Readonly<Record<string, string>> = {
  no: "`nodewise decide eviction --node NAME` tells of a node, `nodewise why -A` of all pods",
  svc: "`kubectl get pods -l SELECTOR` lists those behind a service",
};
const SAME: Readonly<Record<string, string>> = { node: "no", nodes: "no", service: "svc", services: "svc" };

/** As kubectl takes it: `POD`, `pod POD`, `pod/POD`, `deploy/NAME`, `deployment.apps/NAME`. Errors: more than one, or of another type. */
export function askedIn(words: readonly string[]): Result<Asked, Fault> {
  const [first = "", second] = words;
  if (words.length === 0 || (words.length === 1 && POD.includes(first))) return ok({ pod: null, workload: null });
  const isTyped = second !== undefined && !first.includes("/") && typeOf(first) !== undefined;
  const text = isTyped ? `${first}/${second}` : first;
  if (words.length > (isTyped ? 2 : 1))
    return fault(EXIT.badInput, `${words.join(" ")}: ask for one pod, or give none for all that have a story`);
  const parts = text.split("/");
  const [type = "", name = ""] = parts;
  const known = parts.length > 1 ? typeOf(type) : undefined;
  if (parts.length > 2 || parts.includes("")) {
    const form = known === undefined ? "NAME or NAMESPACE/NAME" : `${type}/NAME`;
    return fault(EXIT.badInput, `\`${text}\` is no pod's name: give it as ${form}`);
  }
  if (known === undefined) return ok({ pod: text, workload: null });
  if (known === "pod") return ok({ pod: name, workload: null });
  if (known in OTHERS) return fault(EXIT.badInput, `${text}: stories are of pods: ${OTHERS[known]}`);
  return ok({ pod: null, workload: { kind: known as Workload["kind"], name } });
}

/** `pod`, a kind of workload or one of `OTHERS`; undefined: a word that is no type, such as a namespace. */
function typeOf(word: string): string | undefined {
  const short = word.toLowerCase().replace(/\.(?:v1\.)?(?:apps|batch)$/, "");
  if (POD.includes(short)) return "pod";
  const kind = Object.entries(WORKLOADS).find(([, names]) => (names as readonly string[]).includes(short))?.[0];
  return kind ?? (short in OTHERS ? short : SAME[short]);
}
