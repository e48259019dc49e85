import type { DecisionFilter } from "../../../db/store.ts";
import { issueText } from "../../inputs/origin.ts";
import { isKind, KINDS } from "../../model/decision.ts";
import { decodeSnapshot } from "../../model/decode.ts";
import { type Change, changed } from "../../replay/change.ts";
import { misspelt, readConfigurationText } from "../configuration-text.ts";
import type { FormFault } from "../form-fault.ts";
import type { GivenText } from "../what-if/documents.ts";
import { timeIn } from "./times.ts";

/** What a link to the page may say beforehand. */
export const LINK_FIELDS = ["since", "until", "node", "kind", "as", "change", "decision"] as const;
export type ReplayTexts = Readonly<Record<(typeof LINK_FIELDS)[number], string>>;

/** Of all that a form or a link holds, the question. */
export const linkTexts = (given: Partial<ReplayTexts>): ReplayTexts =>
  Object.fromEntries(LINK_FIELDS.map((name) => [name, given[name] ?? ""])) as ReplayTexts;

/** What is to be decided again, and with what. */
export interface ReplayQuestion {
  readonly filter: Pick<DecisionFilter, "node" | "kind" | "sinceMs" | "untilMs">;
  readonly change: Change;
}
export interface ReadQuestion {
  /** Null: something is wrong. */
  readonly question: ReplayQuestion | null;
  readonly faults: readonly FormFault[];
  /** Of what changes nothing. */
  readonly warnings: readonly string[];
}

/** The form's texts as a question. `file`: in the place of the configuration's text. Whether there is such a node is not looked at. */
export function readQuestion(texts: ReplayTexts, file: GivenText | null, nowMs: number): ReadQuestion {
  const faults: FormFault[] = [];
  const at = (field: "since" | "until"): { [name: string]: number } => {
    const text = texts[field].trim();
    if (text === "") return {};
    const ms = timeIn(text, nowMs);
    if (ms === null)
      faults.push({
        field,
        text: `\`${text.slice(0, 60)}\` is neither a time (2026-01-31T12:00:00Z) nor a duration (90m, 24h, 7d)`,
      });
    return ms === null ? {} : { [`${field}Ms`]: ms };
  };
  const times: { sinceMs?: number; untilMs?: number } = { ...at("since"), ...at("until") };
  const { sinceMs, untilMs } = times;
  if (sinceMs !== undefined && sinceMs > (untilMs ?? nowMs))
    faults.push({ field: "since", text: `is later than ${untilMs === undefined ? "now" : "until"}` });
  const node = texts.node.trim();
  const kind = texts.kind.trim();
  if (kind !== "" && !isKind(kind)) faults.push({ field: "kind", text: `must be one of ${KINDS.join(", ")}` });
  const read = readChange(texts, file);
  faults.push(...read.faults.map((text) => ({ field: "change", text })));
  if (faults.length > 0) return { question: null, faults, warnings: read.warnings };
  const filter = { ...times, ...(node === "" ? {} : { node }), ...(isKind(kind) ? { kind } : {}) };
  return { question: { filter, change: read.change }, faults: [], warnings: read.warnings };
}

interface ReadChange {
  readonly change: Change;
  readonly faults: readonly string[];
  readonly warnings: readonly string[];
}

function readChange({ as, change: text }: ReplayTexts, file: GivenText | null): ReadChange {
  const given = file ?? { name: "the configuration", text };
  if (given.text.trim() === "") return { change: {}, faults: [], warnings: [] };
  const read = readConfigurationText(given);
  if (!read.ok) return { change: {}, faults: read.error, warnings: [] };
  const { value, source, base } = read.value;
  const change = as === "whole" ? { kubeletConfiguration: value } : { kubeletConfigurationPatch: value };
  const checked = decodeSnapshot(changed({}, change));
  const origins = [{ at: ["kubeletConfiguration"], source, base }];
  const faults = checked.ok ? [] : [...new Set(checked.error.map((issue) => issueText(issue, origins)))];
  return { change, faults, warnings: misspelt(read.value) };
}
