/** A word of a command line, and its line in the text, from 1. */
interface Word {
  readonly text: string;
  readonly line: number;
}
interface CommandLine {
  /** From the first flag on, without the quotes that a shell removes. */
  readonly args: readonly Word[];
  /** Variables in the command line that the text does not set: they may contain flags. */
  readonly unset: readonly string[];
}

const ASSIGNMENT = /^\s*(?:export\s+)?([A-Za-z_]\w*)=/;
/** Names of environment variables; names of systemd directives contain lower-case letters. */
const VARIABLE = /^[A-Z_][A-Z0-9_]*$/;
const REFERENCE = /^\$(?:\{(\w+)\}|(\w+))$/;

/**
 * The arguments of a program, from a text that contains its command line: the output of `ps -o args`, /proc/PID/cmdline, a systemd
 * unit with its drop-ins (`systemctl cat`), or a file of variables such as kubeadm-flags.env. If a unit starts the program, its
 * variables are replaced where it uses them; otherwise all variables count whose value begins with a flag.
 */
export function readCommandLine(text: string): CommandLine {
  if (text.includes("\0")) {
    const words = text.split("\0").map((word) => ({ text: word, line: 1 }));
    return { args: fromFirstFlag(words.filter((word) => word.text !== "")), unset: [] };
  }
  const variables = new Map<string, readonly Word[]>();
  const plain: Word[] = [];
  let started: readonly Word[] = [];
  for (const [line, at] of logicalLines(text)) {
    if (/^\s*(?:[#;[]|$)/.test(line)) continue;
    const [before = "", name = ""] = ASSIGNMENT.exec(line) ?? [];
    const words = wordsOf(line.slice(before.length), at);
    if (name === "") plain.push(...fromFirstFlag(words));
    else if (VARIABLE.test(name)) variables.set(name, words.flatMap(inner));
    else if (name === "Environment") for (const word of words) set(variables, word);
    // an empty one resets those before it
    else if (name === "ExecStart") started = words.length === 0 ? [] : [...started, ...words];
  }
  if (started.length === 0) {
    const flags = [...variables.values()].filter(([first]) => isFlag(first));
    return { args: [...flags.flat(), ...plain], unset: [] };
  }
  const nameOf = ({ text: word }: Word): string | undefined => {
    const [, braced, bare] = REFERENCE.exec(word) ?? [];
    return braced ?? bare;
  };
  const filled = started.flatMap((word) => {
    const name = nameOf(word);
    return name === undefined ? [word] : (variables.get(name) ?? []);
  });
  const names = started.flatMap((word) => nameOf(word) ?? []);
  return {
    args: [...fromFirstFlag(filled), ...plain],
    unset: [...new Set(names)].filter((name) => !variables.has(name)),
  };
}

const isFlag = (word: Word | undefined): boolean => word !== undefined && /^--?\w/.test(word.text);
const fromFirstFlag = (words: readonly Word[]): readonly Word[] => {
  const first = words.findIndex(isFlag);
  return first === -1 ? [] : words.slice(first);
};

/** The words inside a quoted word. */
const inner = (word: Word): readonly Word[] => wordsOf(word.text, word.line);

function set(variables: Map<string, readonly Word[]>, { text, line }: Word): void {
  const [before = "", name = ""] = ASSIGNMENT.exec(text) ?? [];
  if (name !== "") variables.set(name, inner({ text: text.slice(before.length), line }));
}

/** Lines with their continuations (backslash at the end) joined, and the number of the first line of each, from 1. */
function logicalLines(text: string): readonly (readonly [line: string, at: number])[] {
  const lines: [string, number][] = [];
  let isJoined = false;
  for (const [i, part] of text.split(/\r?\n/).entries()) {
    const last = lines.at(-1);
    if (isJoined && last !== undefined) last[0] += `\n${part}`;
    else lines.push([part, i + 1]);
    isJoined = part.endsWith("\\");
  }
  return lines;
}

/** Runs of quoted text, of escaped characters, and of other characters. */
const WORD = /(?:\\[^\n]|"(?:\\[\s\S]|[^"\\])*"|'[^']*'|[^\s\\])+/g;
const QUOTED = /\\(.)|"((?:\\[\s\S]|[^"\\])*)"|'([^']*)'/gs;

/** `at`: the line of the first character of `text`. */
const wordsOf = (text: string, at: number): readonly Word[] =>
  [...text.matchAll(WORD)].map(({ 0: word, index }) => ({
    text: word.replace(
      QUOTED,
      (_, escaped, double, single) => escaped ?? double?.replace(/\\([\s\S])/g, "$1") ?? single,
    ),
    line: at + (text.slice(0, index).match(/\n/g)?.length ?? 0),
  }));
