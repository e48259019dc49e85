import stringWidth from "string-width";
import { memo } from "../base/cache.ts";

const COLORS = {
  bold: [1, 22],
  dim: [2, 22],
  red: [31, 39],
  green: [32, 39],
  yellow: [33, 39],
  cyan: [36, 39],
} as const;
export type Color = keyof typeof COLORS;
/** Wraps a text in a colour, or leaves it alone where colour is off. */
export type Paint = (color: Color, text: string) => string;

/** The output that a text is laid out for. */
export interface Screen {
  /** Infinity where the output is no terminal: nothing is cut off in files and pipes. */
  readonly columns: number;
  readonly paint: Paint;
}

export const plainPaint: Paint = (_, text) => text;
export const colorPaint: Paint = (color, text) => {
  const [on, off] = COLORS[color];
  return text === "" ? "" : `\u001b[${on}m${text}\u001b[${off}m`;
};

/**
 * Names come from callers: what would move the cursor, colour the screen, turn the writing direction or not be seen at all shows
 * as its picture (`␛`, `␊`), or as its code (`\u202e`) where it has none. One line stays one line.
 */
export const printable = (text: string): string => text.replace(UNPRINTABLE, picture);
/** Makes a text of several lines printable: tabs and line ends stay. */
export const visible = (text: string): string => text.replace(UNSEEN, picture);
/**
 * Makes laid-out text printable: lines and colours stay. For values that should need no escaping but may come from a
 * damaged record.
 */
export const escapeControls = (drawn: string): string => drawn.replace(STEERING, picture);
const UNPRINTABLE = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}]/gu;
const UNSEEN = /(?![\t\n\r])[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}]/gu;
// biome-ignore lint/suspicious/noControlCharactersInRegex: the escape that starts a colour
const STEERING = /(?!\n|\u001b\[\d+m)[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}]/gu;

/** Unicode's control pictures are in the order of the control characters that they show. */
const PICTURES = 0x2400;
function picture(character: string): string {
  const code = character.codePointAt(0) as number;
  if (code < 0x20) return String.fromCodePoint(PICTURES + code);
  if (code === 0x7f) return "␡";
  const hex = code.toString(16);
  return hex.length > 4 ? `\\u{${hex}}` : `\\u${hex.padStart(4, "0")}`;
}

/** A line with the inputs that the answer assumes; empty: none. */
export const assumedLine = (assumed: string | null | undefined, paint: Paint): string =>
  assumed ? paint("dim", `assumed: ${printable(assumed)}\n`) : "";

/** Columns that a text takes, its colours aside: two for each East Asian letter, none for a mark that joins the letter before. */
export const widthOf = (text: string): number => (PLAIN.test(text) ? text.length : otherWidth(text));
/** A table measures each of a few texts many times. */
const otherWidth = memo(1000, (text) => stringWidth(text));
const PLAIN = /^[ -~]*$/;

// biome-ignore lint/suspicious/noControlCharactersInRegex: the escape that starts a colour
const COLOUR = /(\u001b\[\d+m)/;
/** A change of colour is a letter by itself, which takes no column. */
const lettersOf = (text: string): readonly string[] =>
  text.split(COLOUR).flatMap((part, i) => {
    if (i % 2 === 1) return part;
    // not made at the start: the first takes 40 ms
    return PLAIN.test(part) ? [...part] : Array.from(new Intl.Segmenter().segment(part), ({ segment }) => segment);
  });

/** The number of first letters that fit into `width` columns. */
function fitting(letters: readonly string[], width: number): number {
  let [count, used] = [0, 0];
  for (const letter of letters) {
    used += widthOf(letter);
    if (used > width) break;
    count++;
  }
  return count;
}

/** Clips a text to `width` columns, with an ellipsis if something is cut off. The text must have no colours. */
export function clip(text: string, width: number): string {
  if (widthOf(text) <= width) return text;
  const letters = lettersOf(text);
  return `${letters.slice(0, fitting(letters, width - 1)).join("")}…`;
}

/** Clips like `clip`, but keeps the end. */
export function clipStart(text: string, width: number): string {
  if (widthOf(text) <= width) return text;
  const letters = lettersOf(text).toReversed();
  return `…${letters
    .slice(0, fitting(letters, width - 1))
    .toReversed()
    .join("")}`;
}

/** A word that is longer than a line is broken behind one of these rather than anywhere: `nodefs.` and `inodesFree`. */
const JOINTS: ReadonlySet<string> = new Set("./,:]=<-");

/** How many of the first letters of a long word go on a line of `width` columns. */
function breakIn(letters: readonly string[], width: number): number {
  const most = Math.max(1, fitting(letters, width));
  const joint = letters.slice(0, most).findLastIndex((letter) => JOINTS.has(letter)) + 1;
  return joint > most / 3 ? joint : most;
}

/** Lines of at most `width` columns, broken between words where there are any. */
export function wrap(text: string, width: number): readonly string[] {
  const most = Math.max(1, width);
  const lines: string[] = [];
  let line = "";
  for (const word of text.split(" ")) {
    const longer = line === "" ? word : `${line} ${word}`;
    if (widthOf(longer) <= most) {
      line = longer;
      continue;
    }
    if (line !== "") lines.push(line);
    let letters = lettersOf(word);
    while (widthOf(letters.join("")) > most) {
      const count = breakIn(letters, most);
      lines.push(letters.slice(0, count).join(""));
      letters = letters.slice(count);
    }
    line = letters.join("");
  }
  return line === "" ? lines : [...lines, line];
}

/** What a line begins with: branches of a tree, its indent, and the mark or the number of a list. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: the escape that starts a colour
const BEGINNING = /^((?:\u001b\[\d+m|[ │])*)(- |\d+ {2,})?/;

/** Wraps each line to the columns; continuation lines are indented a bit. */
export function fitLines(text: string, columns: number): string {
  if (columns === Number.POSITIVE_INFINITY) return text;
  return text
    .split("\n")
    .flatMap((line) => (widthOf(line) <= columns ? line : fitted(line, columns)))
    .join("\n");
}
function fitted(line: string, columns: number): readonly string[] {
  const [beginning = "", indent = "", mark = "  "] = BEGINNING.exec(line) ?? [];
  const branches = indent.replaceAll(new RegExp(COLOUR, "g"), "");
  const below = widthOf(branches) < columns / 2 ? branches + " ".repeat(mark.length) : "  ";
  const lines = wrap(line.slice(beginning.length), columns - Math.max(widthOf(beginning), widthOf(below)));
  return lines.map((part, i) => `${i === 0 ? beginning : below}${part}`.trimEnd());
}
