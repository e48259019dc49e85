import { err, ok, type Result } from "./result.ts";

/** How an attempt may end. `timeout`: no answer in time, a failure; `hang`: an HTTP body that never ends, an error. */
export const OUTCOME_WORDS = ["ok", "fail", "error", "warn", "timeout", "hang"] as const;
export type OutcomeWord = (typeof OUTCOME_WORDS)[number];
export interface ScriptedOutcome {
  readonly word: OutcomeWord;
  /** Null: at once, and for `timeout` and `hang` the probe's whole timeout. */
  readonly tookMs: number | null;
}
/** Answers of successive attempts; the last repeats. */
export type OutcomeScript = readonly ScriptedOutcome[];

/** Outcomes of one script. */
export const MOST_OUTCOMES = 10_000;
const ITEM = /^([a-z]+)(?:@(\d{1,7}(?:\.\d{1,3})?)(ms|s))?(?:\*(\d{1,6}))?$/;
const WANTED = `one of ${OUTCOME_WORDS.join(", ")}, with @TIME for how long it takes and *N for how often, such as fail@200ms*3`;

/** `ok,ok,fail*3,error`, or a list of such items. Error: which item is none, and what one is. */
export function parseOutcomes(input: string | readonly string[]): Result<OutcomeScript, string> {
  const items = typeof input === "string" ? input.split(",") : input;
  const script: ScriptedOutcome[] = [];
  for (const item of items) {
    const [, word, amount, unit, times = "1"] = ITEM.exec(item.trim()) ?? [];
    if (word === undefined || !isWord(word)) return err(`\`${item.trim().slice(0, 40)}\` is no outcome: ${WANTED}`);
    if (Number(times) === 0 || script.length + Number(times) > MOST_OUTCOMES) {
      return err(`\`${item.trim()}\`: an outcome comes once at least, and ${MOST_OUTCOMES} of them are enough`);
    }
    const tookMs = amount === undefined ? null : Math.round(Number(amount) * (unit === "s" ? 1000 : 1));
    const outcome: ScriptedOutcome = { word, tookMs };
    for (let i = 0; i < Number(times); i++) script.push(outcome);
  }
  return ok(script);
}
const isWord = (word: string): word is OutcomeWord => (OUTCOME_WORDS as readonly string[]).includes(word);
