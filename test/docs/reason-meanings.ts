import type { Numbers } from "../../api/model/forms.ts";
import { distanceText, humanBytes } from "../../api/text/size.ts";
import { reasonText } from "../../api/text/tables/index.ts";
import { durationText, timeText } from "../../api/text/time-text.ts";
import { PLAIN_MEANINGS } from "./plain-meanings.ts";

const FIELD = "field";
const DAY_MS = 86_400_000;

/**
 * The meaning of a reason code: its plain meaning, else the sentence of its reasons with `<name>` in the place of the number of that
 * name. Throws if the code has no sentence, if its sentence needs real numbers, or if its plain meaning names a number that the
 * sentence does not read.
 */
export function meaningOf(code: string): string {
  const { numbers, values, named } = placeholders();
  const sentence = sentenceOf(code, numbers);
  if (sentence === code) throw new Error(`the reason code ${code} has no sentence in api/text`);
  const plain = PLAIN_MEANINGS[code];
  if (plain === undefined) {
    const meaning = named(sentence);
    if (/NaN|Infinity|undefined|\[object/.test(meaning))
      throw new Error(
        `the sentence of ${code} needs real numbers (${meaning}): write its meaning in plain-meanings.ts`,
      );
    return meaning;
  }
  const [other] = namesIn(plain).filter((name) => !values.has(name));
  if (other !== undefined) throw new Error(`the sentence of ${code} reads no number <${other}>`);
  return plain;
}
const sentenceOf = (code: string, numbers: Numbers): string =>
  reasonText({ code, field: FIELD, numbers }, false).slice(`${FIELD}: `.length);
const namesIn = (text: string): readonly string[] => [...text.matchAll(/<(\w+)>/g)].map(([, name = ""]) => name);

/**
 * Numbers of every name. The text of one is `<name>`; a sentence that calculates with it gets a number of its own, and `named` puts
 * `<name>` in the place of that number's duration, time, size or percentage.
 */
function placeholders() {
  const values = new Map<string, number>();
  const get = (_: object, key: string | symbol) => {
    const name = String(key);
    const value = values.get(name) ?? (values.size + 101) * DAY_MS;
    values.set(name, value);
    return { toString: () => `<${name}>`, valueOf: () => value };
  };
  const numbers = new Proxy({}, { get }) as Numbers;
  const named = (text: string): string => {
    let whole = text;
    for (const [name, value] of values) for (const form of formsOf(value)) whole = whole.replaceAll(form, `<${name}>`);
    return whole;
  };
  return { numbers, values, named };
}
/** The texts that sentences make of a number, the longest first. */
const formsOf = (value: number): readonly string[] =>
  [
    ...[durationText(value), timeText(value), timeText(Math.floor(value / 1e6)), humanBytes(value)],
    ...[distanceText(value), `${value * 100}`, `${value}`],
  ].sort((a, b) => b.length - a.length);
