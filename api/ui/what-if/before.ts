import { assumedTime } from "../../documents/inputs/origin.ts";
import type { Snapshot } from "../../model/snapshot.ts";
import { parseJson } from "../../service/json.ts";
import { type Assembled, assemble, checked, type Fields, fieldsOf } from "./assemble.ts";
import { type FormFault, type Given, machineNamed } from "./given.ts";
import { type Part, recognise } from "./recognise.ts";

/** The node as it is, from all that was given of it. */
export interface Before {
  /** Null: nothing was given, or something of it is wrong. */
  readonly snapshot: Snapshot | null;
  /** What is right of it, for the form to show; null: nothing. */
  readonly known: Snapshot | null;
  /** As it was given, with fields that no decision reads. */
  readonly configuration: unknown;
  readonly faults: readonly FormFault[];
  readonly given: Assembled["given"];
  /** The values that were assumed where nobody gave one. */
  readonly assumed: readonly string[];
  /** The contents of the files, for the form to keep; empty: nothing. */
  readonly kept: string;
  /** Characters of what is too large to be kept; 0: nothing is. */
  readonly lost: number;
  /** A whole snapshot was given, so a stored one does not count. */
  readonly isWhole: boolean;
}

/** Limit on the file contents that a form keeps. */
export const MAX_KEPT = 1024 * 1024;

/** Puts together a stored snapshot, what the form kept, files, pasted text and choices; the later take the place of the earlier. */
export function beforeOf({ texts, files, faults: unread }: Given, stored: Fields | null, nowMs: number): Before {
  const faults: FormFault[] = [...unread];
  const tell = (field: FormFault["field"], found: readonly string[]): void => {
    faults.push(...found.map((text) => ({ field, text })));
  };
  const known = keptIn(texts.kept);
  if (known === null) tell("files", ["what the form kept of the files cannot be read: choose them again"]);
  const ofFiles = files.map(recognise);
  const pasted = texts.paste.trim() === "" ? null : recognise({ name: "the text", text: texts.paste });
  tell(
    "files",
    ofFiles.flatMap((each) => each.faults),
  );
  tell("paste", pasted?.faults ?? []);
  const fileParts = ofFiles.flatMap((each) => each.parts);
  const parts = [...fileParts, ...(pasted?.parts ?? [])];
  const isWhole = parts.some(({ part }) => part === "snapshot");
  const all = assemble(merged(isWhole ? {} : stored, known), parts);
  tell(pasted === null ? "files" : "paste", all.faults);
  const chosen = withChoices(all.input, texts);
  tell("machine", chosen.faults);
  const isNothing = Object.keys(chosen.input).length === 0;
  const {
    snapshot,
    faults: wrong,
    kept: right,
  } = isNothing ? { snapshot: null, faults: [], kept: null } : checked({ ...all, input: chosen.input });
  tell(fileParts.length === 0 && pasted !== null ? "paste" : "files", wrong);
  const { kept, lost } = keptOf(known ?? {}, fileParts);
  const { assumed, snapshot: timed } = withTime(snapshot, nowMs);
  return {
    snapshot: faults.length === 0 ? timed : null,
    known: timed ?? (right === null || Object.keys(right).length <= 1 ? null : right),
    configuration: chosen.input["kubeletConfiguration"],
    faults,
    given: all.given,
    assumed: [...chosen.assumed, ...assumed],
    kept,
    lost,
    isWhole,
  };
}

const INNER = ["runtime", "assignments"] as const;
function merged(stored: Fields | null, kept: Fields | null): Fields {
  const all: Record<string, unknown> = { ...stored, ...kept };
  for (const name of INNER)
    if (all[name] !== undefined) all[name] = { ...fieldsOf(stored?.[name]), ...fieldsOf(kept?.[name]) };
  return all;
}

function keptIn(text: string): Fields | null {
  if (text === "") return {};
  const read = parseJson(new TextEncoder().encode(text));
  return read.ok ? fieldsOf(read.value) : null;
}

function keptOf(known: Fields, parts: readonly Part[]): { readonly kept: string; readonly lost: number } {
  const { kept } = checked(assemble(known, parts));
  const text = kept === null || Object.keys(kept).length === 0 ? "" : JSON.stringify(kept);
  return text.length > MAX_KEPT ? { kept: "", lost: text.length } : { kept: text, lost: 0 };
}

interface Chosen {
  readonly input: Fields;
  readonly assumed: readonly string[];
  readonly faults: readonly string[];
}

/** The machine and the cgroup version, which nothing that kubectl prints tells. */
function withChoices(input: Fields, { machine, cgroup }: Given["texts"]): Chosen {
  const named = machine === "" ? undefined : machineNamed(machine);
  const faults = machine !== "" && named === undefined ? [`there is no machine \`${machine.slice(0, 60)}\``] : [];
  const all = named === undefined ? input : { ...input, machine: named };
  if (Object.keys(all).length === 0) return { input: all, assumed: [], faults };
  const given = fieldsOf(all["cgroup"]);
  const isSaid = cgroup === "1" || cgroup === "2" || given["version"] !== undefined;
  const version = cgroup === "1" || cgroup === "2" ? Number(cgroup) : (given["version"] ?? 2);
  const { kubeletconfig, ...bare } = fieldsOf(all["kubeletConfiguration"]);
  const { cgroupDriver } = fieldsOf(kubeletconfig ?? bare);
  const driver = given["driver"] ?? (cgroupDriver === "systemd" ? "systemd" : "cgroupfs");
  return {
    input: { ...all, cgroup: { ...given, version, driver } },
    assumed: isSaid ? [] : ["cgroup version 2, as nothing says which"],
    faults,
  };
}

/** Eviction and the collections decide about a moment. */
function withTime(snapshot: Snapshot | null, nowMs: number): { snapshot: Snapshot | null; assumed: readonly string[] } {
  if (snapshot === null || snapshot.observedAt !== undefined) return { snapshot, assumed: [] };
  const latest = assumedTime(snapshot);
  const observedAt = latest ?? new Date(nowMs).toISOString();
  const why = latest === undefined ? "now" : "the latest time in the stats";
  return { snapshot: { ...snapshot, observedAt }, assumed: [`observed at ${observedAt}, ${why}`] };
}
