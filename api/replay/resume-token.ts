import type { Place } from "../../db/page-token.ts";
import type { DecisionFilter } from "../../db/store.ts";
import type { Change } from "./change.ts";

/** Where a replay goes on, and what it is a replay of. */
export interface Resume extends Place {
  /** When its first decision was made, for the progress. */
  readonly fromMs: number;
  /** The end that was set when it began: what is recorded meanwhile does not make it endless. */
  readonly untilMs: number;
  /** Of node, kind and change. */
  readonly print: string;
}
type Sha256 = (text: string) => string | Promise<string>;

/** Tells replays apart that ask for different things; their times may have been meant relative to now. */
export async function printOf(
  { node, kind }: Pick<DecisionFilter, "node" | "kind">,
  { kubeletConfiguration, kubeletConfigurationPatch }: Change,
  sha256: Sha256,
): Promise<string> {
  const asked = [node, kind, kubeletConfiguration, kubeletConfigurationPatch].map((part) => part ?? null);
  return (await sha256(JSON.stringify(asked))).slice(0, 16);
}

export const encodeResume = ({ fromMs, untilMs, atMs, seq, print }: Resume): string =>
  btoa(`${fromMs}.${untilMs}.${atMs}.${seq}.${print}`).replaceAll("=", "").replaceAll("+", "-").replaceAll("/", "_");

/** The last moment that a date can tell. */
const LAST_MS = 8.64e15;
const TEXT = /^(-?\d{1,16})\.(-?\d{1,16})\.(-?\d{1,16})\.(\d{1,16})\.([0-9a-f]{16})$/;

/** Null: no replay gave it out. */
export function decodeResume(token: string): Resume | null {
  if (!/^[\w-]{4,128}$/.test(token)) return null;
  let text: string;
  try {
    text = atob(token.replaceAll("-", "+").replaceAll("_", "/"));
  } catch {
    return null;
  }
  const parts = TEXT.exec(text);
  if (parts === null) return null;
  const [fromMs, untilMs, atMs, seq] = parts.slice(1, 5).map(Number) as [number, number, number, number];
  if ([fromMs, untilMs, atMs].some((ms) => Math.abs(ms) > LAST_MS)) return null;
  const resume = { fromMs, untilMs, atMs, seq, print: parts[5] as string };
  return encodeResume(resume) === token ? resume : null;
}
