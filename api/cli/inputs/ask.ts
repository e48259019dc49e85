import { formOf, formText, hasForm } from "../../../actuator/manifests/document-form.ts";
import { issueText } from "../../inputs/origin.ts";
import { decodeAsk } from "../../model/asks.ts";
import { type AskOf, KINDS, type Kind } from "../../model/decision.ts";
import type { Result } from "../../model/result.ts";
import { EXIT, type Fault, fault } from "../exit.ts";
import { optionAt, type ProbesOptions, probesFields } from "./probes.ts";
import { readDocument } from "./read.ts";

/**
 * `--pod`: a file with one Pod, or NAMESPACE/NAME of a pod of the snapshot; `probes`: what is asked beside it. Errors name
 * file, line and path, or the option.
 */
export async function readAsk(
  kind: Kind,
  pod: string | undefined,
  probes: ProbesOptions = {},
): Promise<Result<AskOf[Kind], Fault>> {
  const fields = probesFields(kind, probes);
  if (!fields.ok) return fields;
  const ask = (given: unknown): ReturnType<typeof decodeAsk> => decodeAsk(kind, { pod: given, ...fields.value });
  const named = (path: string, message: string): string => `${optionAt(path, probes) ?? path}: ${message}`;
  if (pod === undefined) return refused(fields.value === undefined ? decodeAsk(kind, null) : ask(null), named);
  if (!takesPod(kind)) {
    const others = KINDS.filter(takesPod).join(", ");
    return fault(EXIT.badInput, `--pod: ${kind} asks about no single pod: leave it out; ${others} take it`);
  }
  if (isPodName(pod)) {
    return refused(ask(pod), (path, message) => `${optionAt(path, probes) ?? `--pod ${pod}`}: ${message}`);
  }
  if (NAME_ONLY.has(kind)) {
    return fault(EXIT.badInput, `--pod ${pod}: ${kind} takes NAMESPACE/NAME of a pod of the snapshot`);
  }
  const source = await readDocument(pod);
  if (!source.ok) return source;
  const { value, file } = source.value;
  if (isOther(value)) {
    const wanted = "a file with one v1.Pod, or NAMESPACE/NAME of a pod of the snapshot";
    return fault(EXIT.badInput, `${file}: is ${formText(value)}, and --pod takes ${wanted}`);
  }
  const origins = [{ at: ["ask", "pod"], source: source.value, base: [] }];
  return refused(ask(value), (path, message) =>
    path.startsWith("ask.pod") ? issueText({ path, message }, origins) : named(path, message),
  );
}

function takesPod(kind: Kind): boolean {
  const ask = decodeAsk(kind, { pod: null });
  return ask.ok && ask.value !== undefined && "pod" in ask.value;
}

/** Kinds that ask about a pod that is there. */
const NAME_ONLY: ReadonlySet<Kind> = new Set<Kind>(["eviction"]);

/** A file that has such a name is given as `./NAMESPACE/NAME`. */
const isPodName = (text: string): boolean =>
  /^[a-z0-9][a-z0-9-]*\/[a-z0-9][a-z0-9.-]*$/.test(text) && !/\.(?:json|ya?ml)$/.test(text);

/** What is clearly no pod; of what may be a bad one, the schema says what is wrong. */
function isOther(value: unknown): boolean {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return true;
  if (hasForm(value, "v1.Pod")) return false;
  const form = formOf(value);
  return "kind" in value || (form !== undefined && form !== "v1.Node");
}

function refused(
  decoded: ReturnType<typeof decodeAsk>,
  text: (path: string, message: string) => string,
): Result<AskOf[Kind], Fault> {
  if (decoded.ok) return decoded;
  // one option may give several places
  return fault(EXIT.badInput, ...new Set(decoded.error.map(({ path, message }) => text(path, message))));
}
