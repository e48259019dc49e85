import type { Command } from "commander";
import { commandTree, type TreeCommand, type TreeOption } from "../command-tree.ts";

export type Shell = "bash" | "zsh" | "fish";

/** The completion script of a shell, generated from the commands. */
export function completionScript(shell: Shell, program: Command): string {
  const tree = commandTree(program);
  return { bash: bashScript, zsh: zshScript, fish: fishScript }[shell](tree);
}

/** A word in single quotes, for all three shells; a quote in the text ends and reopens them. */
const quoted = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`;
const pathOf = ({ path }: TreeCommand): string => path.join(" ");
const flagsOf = (options: readonly TreeOption[]): readonly string[] => options.flatMap(({ flags }) => flags);
const takes = (options: readonly TreeOption[], value: TreeOption["value"]): readonly string[] =>
  flagsOf(options.filter((option) => option.value === value));

/** Paths as patterns of `case "$at $word"`: a path of one word has only the space before it. */
const pathPatterns = (tree: readonly TreeCommand[], separator: string): string =>
  tree
    .filter(({ path }) => path.length > 0)
    .map(({ path }) => quoted(path.length === 1 ? ` ${path[0]}` : path.join(" ")))
    .join(separator);

/** The cases for option values, the same in bash and zsh. */
function valueCases(options: readonly TreeOption[], list: (words: readonly string[]) => string): string {
  const plain = (["file", "directory", "text"] as const).flatMap((value) => {
    const flags = takes(options, value);
    return flags.length === 0 ? [] : [`        ${flags.join("|")}) takes=${value} ;;`];
  });
  const chosen = options.flatMap(({ flags, value }) =>
    typeof value === "string" ? [] : [`        ${flags.join("|")}) takes=choices choices=${list(value)} ;;`],
  );
  const named = options
    .filter(({ names }) => names.length > 0)
    .map(({ flags, names }) => `        ${flags.join("|")}) takes=file choices=${list(names)} ;;`);
  // the first match counts
  const cases = [...named, ...plain, ...chosen];
  return cases.length === 0 ? "" : `      case $previous in\n${cases.join("\n")}\n      esac\n`;
}

function bashScript(tree: readonly TreeCommand[]): string {
  const cases = tree.map((one) => {
    const { commands, options, words, takesFiles } = one;
    const names = [...commands.map(({ name }) => name), ...words].join(" ");
    return `    ${quoted(pathOf(one))})
      commands=${quoted(names)} options=${quoted(flagsOf(options).join(" "))} files=${takesFiles ? "yes" : "''"}
${valueCases(options, (all) => quoted(all.join(" ")))}      ;;`;
  });
  return `# bash completion of nodewise, made by \`nodewise completion bash\`
_nodewise() {
  local at='' word i commands options files takes='' choices IFS=$' \\t\\n'
  local current=\${COMP_WORDS[COMP_CWORD]} previous=\${COMP_WORDS[COMP_CWORD-1]}
  # bash makes three words of --option=value
  if [[ $current == '=' ]]; then current=''
  elif [[ $previous == '=' ]]; then previous=\${COMP_WORDS[COMP_CWORD-2]}; fi
  for ((i = 1; i < COMP_CWORD; i++)); do
    word=\${COMP_WORDS[i]}
    [[ $word == help && -z $at ]] && continue
    [[ $at == man && $word != -* ]] && at=''
    case "$at $word" in
      ${pathPatterns(tree, "|")}) at=\${at:+$at }$word ;;
    esac
  done
  case $at in
${cases.join("\n")}
  esac
  if [[ -z $takes && $current == -* ]]; then takes=choices choices=$options; fi
  if [[ -z $takes && -z $files ]]; then takes=choices choices=$commands; fi
  COMPREPLY=()
  case $takes in
    text) ;;
    choices) COMPREPLY=($(compgen -W "$choices" -- "$current")) ;;
    directory) compopt -o filenames 2>/dev/null; IFS=$'\\n' COMPREPLY=($(compgen -d -- "$current")) ;;
    *)
      compopt -o filenames 2>/dev/null
      COMPREPLY=($(compgen -W "$choices" -- "$current"))
      IFS=$'\\n' COMPREPLY+=($(compgen -f -- "$current")) ;;
  esac
}
complete -F _nodewise nodewise kubectl-nodewise
`;
}

/** An item of zsh's _describe: the first unescaped colon ends the word. */
const described = (word: string, summary: string): string => quoted(`${word.replaceAll(":", "\\:")}:${summary}`);

function zshScript(tree: readonly TreeCommand[]): string {
  const cases = tree.map((one) => {
    const { commands, options, words, takesFiles } = one;
    const named = commands.map(({ name, summary }) => described(name, summary));
    const flags = options.flatMap((option) => option.flags.map((flag) => described(flag, option.summary)));
    return `    ${quoted(pathOf(one))})
      commands=(${[...named, ...words.map(quoted)].join(" ")})
      options=(${flags.join(" ")})
      files=${takesFiles ? "yes" : "''"}
${valueCases(options, (all) => `(${all.map(quoted).join(" ")})`)}      ;;`;
  });
  return `#compdef nodewise kubectl-nodewise
# zsh completion of nodewise, made by \`nodewise completion zsh\`
_nodewise() {
  local at='' word i files='' takes='' previous=\${words[CURRENT-1]}
  local -a commands options choices
  if [[ $PREFIX == --*=* ]]; then previous=\${PREFIX%%=*}; compset -P '*='; fi
  for ((i = 2; i < CURRENT; i++)); do
    word=\${words[i]}
    [[ $word == help && -z $at ]] && continue
    [[ $at == man && $word != -* ]] && at=''
    case "$at $word" in
      ${pathPatterns(tree, "|")}) at=\${at:+$at }$word ;;
    esac
  done
  case $at in
${cases.join("\n")}
  esac
  case $takes in
    text) ;;
    choices) compadd -a choices ;;
    directory) _files -/ ;;
    file) compadd -a choices; _files ;;
    *)
      if [[ $PREFIX == -* ]]; then _describe option options
      elif [[ -n $files ]]; then _files
      else _describe command commands
      fi ;;
  esac
}
if [[ \${funcstack[1]} == _nodewise ]]; then _nodewise "$@"; else compdef _nodewise nodewise kubectl-nodewise; fi
`;
}

function fishScript(tree: readonly TreeCommand[]): string {
  const lines = tree.flatMap((one) => {
    const at = `complete -c nodewise -n ${quoted(`__nodewise_at ${pathOf(one)}`)}`;
    const { commands, options, words, takesFiles } = one;
    return [
      ...commands.map(({ name, summary }) => `${at} -a ${quoted(name)} -d ${fishText(summary)}`),
      ...(words.length === 0 ? [] : [`${at} -a ${quoted(words.join(" "))}`]),
      ...(takesFiles ? [`${at} -F`] : []),
      ...options.map((option) => `${at} ${fishOption(option)} -d ${fishText(option.summary)}`),
    ];
  });
  return `# fish completion of nodewise, made by \`nodewise completion fish\`
function __nodewise_at
    set -l at ''
    for word in (commandline -opc)[2..]
        test "$word" = help -a -z "$at"; and continue
        test "$at" = man; and not string match -q -- '-*' "$word"; and set at ''
        switch "$at $word"
            case ${pathPatterns(tree, " ")}
                set at (string trim -- "$at $word")
        end
    end
    test "$at" = "$argv"
end
complete -c nodewise -f
${lines.join("\n")}
`;
}
/** In fish a backslash escapes a quote or another backslash. */
const fishText = (text: string): string => `'${text.replaceAll("\\", "\\\\").replaceAll("'", "\\'")}'`;

function fishOption({ flags, value, names: known }: TreeOption): string {
  const names = flags.map((flag) => (flag.startsWith("--") ? `-l ${flag.slice(2)}` : `-s ${flag.slice(1)}`)).join(" ");
  if (value === "none") return names;
  if (value === "file") return `${names} -r -F${known.length === 0 ? "" : ` -a ${quoted(known.join(" "))}`}`;
  if (value === "directory") return `${names} -x -a '(__fish_complete_directories)'`;
  return value === "text" ? `${names} -x` : `${names} -x -a ${quoted(value.join(" "))}`;
}
