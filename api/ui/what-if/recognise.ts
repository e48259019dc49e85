import { formOf, formText } from "../../../actuator/manifests/document-form.ts";
import type { InputDocument } from "../../inputs/document.ts";
import type { Path } from "../../inputs/origin.ts";
import type { PartOption } from "../../inputs/parts.ts";
import { INSTEAD, optionOfForm, wrapperOf } from "../../inputs/wanted.ts";
import { KUBELET_CONFIGURATION_FIELDS } from "../../model/kubelet-configuration-fields.ts";
import { documentsOf, type GivenText } from "./documents.ts";

export type PartName = PartOption | "snapshot";
/** A document, or a part of one, and what it is of a node. */
export interface Part {
  readonly part: PartName;
  /** As the snapshot takes it. */
  readonly posted: unknown;
  readonly source: InputDocument;
  /** Where it stands in its document. */
  readonly base: Path;
}
export interface Recognised {
  readonly parts: readonly Part[];
  /** What is nothing of a node, or cannot be read, each with its place. */
  readonly faults: readonly string[];
}

type Fields = Readonly<Record<string, unknown>>;
const fieldsOf = (value: unknown): Fields => (typeof value === "object" && value !== null ? (value as Fields) : {});

/** The kubelet's files that the decisions read as text, so that they are told even where they are cut off. */
const STATE_FILES: Readonly<Record<string, PartOption>> = {
  cpu_manager_state: "cpu-manager-state",
  memory_manager_state: "memory-manager-state",
  allocated_pods_state: "allocated-pods",
  kubelet_internal_checkpoint: "device-checkpoint",
};

/** The head of what `kubectl get` and `crictl` print without `-o`: nothing but words in capitals. */
const TABLE =
  /^\s*[A-Z][A-Z0-9/%_-]*(?:\([A-Za-z%]+\))?(?:[ \t]+[A-Z][A-Z0-9/%_-]*(?:\([A-Za-z%]+\))?)+[ \t]*\r?(?:\n|$)/;
const AS_JSON = "give what the same command prints with `-o json`";

/** Everything that a text holds of a node, told by its content. */
export function recognise(given: GivenText): Recognised {
  if (TABLE.test(given.text))
    return { parts: [], faults: [`${given.name}:1: is a table, made for people: ${AS_JSON}`] };
  const read = documentsOf(given);
  const state = STATE_FILES[given.name.replace(/^.*\//, "").replace(/\.(?:json|txt)$/, "")];
  if (!read.ok) {
    if (state === undefined) return { parts: [], faults: read.error };
    const source: InputDocument = {
      value: null,
      file: given.name,
      document: 0,
      hasPlaces: false,
      place: () => ({ line: 1, column: 1 }),
    };
    return { parts: [{ part: state, posted: given.text, source, base: [] }], faults: [] };
  }
  const parts: Part[] = [];
  const faults: string[] = [];
  for (const source of read.value) {
    const found = partsOf(source, read.value.length === 1 ? given.text : null);
    if (typeof found === "string") faults.push(`${placeText(source)}: is ${found}`);
    else parts.push(...found);
  }
  return { parts, faults };
}

function placeText(source: InputDocument): string {
  if (!source.hasPlaces || source.document === 0) return source.file;
  return `${source.file}:${source.place([]).line}`;
}

const STATES: ReadonlySet<PartOption> = new Set(Object.values(STATE_FILES));

/** The parts of one document; a text says what it is where that is nothing. `text`: the document's own, of a state file. */
function partsOf(source: InputDocument, text: string | null): readonly Part[] | string {
  const { value } = source;
  const form = formOf(value);
  const part = (name: PartName, posted: unknown = value, base: Path = []): Part => ({
    part: name,
    posted,
    source,
    base,
  });
  if (form === "snapshot") return [part("snapshot")];
  if (form === "v1.Pod") return [part("pods")];
  if (form === "list") return listParts(source);
  if (Array.isArray(value) && value.length > 0 && value.every((item) => formOf(item) === "v1.Pod"))
    return value.map((pod, i) => part("pods", pod, [i]));
  const option = form === undefined ? undefined : optionOfForm(form);
  if (option !== undefined) {
    const isState = STATES.has(option) && text !== null && /^\s*\{/.test(text);
    return [part(option, isState ? text : value, wrapperOf(option, value))];
  }
  if (form === undefined && isPartOfConfiguration(value)) return [part("config")];
  const instead = form === undefined ? undefined : INSTEAD[form];
  return instead === undefined
    ? `${formText(value)}, which is nothing that is known of a node`
    : `${formText(value)}, and no part of a node: ${instead}`;
}

/** Any part of a KubeletConfiguration is one, if it has a field of it. */
const isPartOfConfiguration = (value: unknown): boolean =>
  !Array.isArray(value) &&
  fieldsOf(value)["kind"] === undefined &&
  Object.keys(fieldsOf(value)).some((name) => KUBELET_CONFIGURATION_FIELDS.includes(name));

/** `kubectl get -o json` prints a List of whatever was asked for. */
function listParts(source: InputDocument): readonly Part[] | string {
  const { kind: listKind, items } = fieldsOf(source.value);
  const list = Array.isArray(items) ? (items as readonly unknown[]) : [];
  // of what, an empty list of crictl does not say; those of kubectl and the kubelet have a kind
  if (list.length === 0 && listKind === undefined)
    return [{ part: "sandboxes", posted: source.value, source, base: ["items"] }];
  const parts: Part[] = [];
  for (const [i, item] of list.entries()) {
    const { kind = listKind === "NodeList" ? "Node" : "Pod" } = fieldsOf(item);
    if (kind !== "Node" && kind !== "Pod") return `a list with ${formText(item)}: give nodes and pods`;
    parts.push({ part: kind === "Node" ? "node" : "pods", posted: item, source, base: ["items", i] });
  }
  const nodes = parts.filter(({ part }) => part === "node").length;
  if (nodes > 1) return `a list of ${nodes} nodes: give one (kubectl get node NAME -o json)`;
  if (list.length === 0) return listKind === "NodeList" ? "a list without a node" : [noPods(source)];
  return parts;
}

/** A node without pods is known to have none. */
const noPods = (source: InputDocument): Part => ({ part: "pods", posted: NO_POD, source, base: [] });
export const NO_POD = Symbol("an empty list of pods");
