import { spawnSync } from "node:child_process";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, describe, expect, test } from "vitest";
import { commandTree } from "../../api/cli/command-tree.ts";
import { machineNames } from "../../api/cli/inputs/machine-library.ts";
import { COMMANDS } from "../../api/cli/main.ts";
import { programOf } from "../../api/cli/program.ts";
import { EXIT, terminalOn } from "../../api/cli/terminal.ts";
import { KIND_EXAMPLES } from "../../api/documents/kind-examples.ts";
import { KINDS } from "../../api/model/decision.ts";
import { specOf } from "../../api/model/kinds.ts";
import { VERSIONS } from "../kit/profiles.ts";
import { scratchFolder } from "../kit/scratch.ts";
import { manifest, run } from "./run.ts";

const nowhere = { write: () => true };
const TREE = commandTree(
  programOf(
    { terminal: terminalOn(nowhere, nowhere, {}), isPlugin: false, env: {}, isPiped: () => false, exitWith: () => {} },
    COMMANDS,
  ),
);
const SHELLS = ["bash", "zsh", "fish"] as const;
type Shell = (typeof SHELLS)[number];
const isThere = (program: string): boolean => spawnSync(program, ["--version"]).status === 0;

const scratch = scratchFolder();
const script = (shell: Shell): string => join(scratch, shell);
beforeAll(async () => {
  for (const shell of SHELLS) writeFileSync(script(shell), (await run(["completion", shell])).stdout);
  writeFileSync(join(scratch, "a file.yaml"), "");
});

/**
 * The same question for all three shells: a shell, started in `scratch`, loads the script and prints what it offers for
 * the last word, one line each.
 */
const ASKED: Readonly<Record<Shell, (words: readonly string[]) => readonly string[]>> = {
  bash: (words) => [
    "--norc",
    "-c",
    `source "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _nodewise; printf '%s\\n' "\${COMPREPLY[@]}"`,
    "bash",
    script("bash"),
    ...words,
  ],
  // zsh's own completion functions work only in its line editor; these replacements print their arguments
  zsh: (words) => [
    "-fc",
    `compdef() { : }
compadd() { print -rl -- "\${(@P)2}" | grep -e "^$PREFIX"; }
_describe() { print -rl -- "\${(@P)2}" | sed 's/:.*//' | grep -e "^$PREFIX"; }
_files() { print -rl -- *; }
compset() { PREFIX=\${PREFIX#*=}; }
source "$1"; shift; words=("$@"); CURRENT=$#; PREFIX=\${words[-1]}; _nodewise`,
    "zsh",
    script("zsh"),
    ...words,
  ],
  fish: (words) => ["--no-config", "-c", `source "$argv[1]"; complete -C "$argv[2]"`, script("fish"), words.join(" ")],
};
function offered(shell: Shell, ...words: readonly string[]): readonly string[] {
  const { stdout, stderr } = spawnSync(shell, ASKED[shell](["nodewise", ...words]), { cwd: scratch, encoding: "utf8" });
  expect(stderr).toBe("");
  // fish appends a description to each word
  return stdout.split("\n").flatMap((line) => (line === "" ? [] : [line.split("\t")[0] ?? ""]));
}

describe.each(SHELLS)("the completion of %s", (shell) => {
  test("contains every command and every visible option, and each kind", () => {
    const text = readFileSync(script(shell), "utf8");
    expect(TREE.filter(({ path }) => path[0] === "decide").map(({ path }) => path[1])).toEqual([undefined, ...KINDS]);
    for (const { path, options } of TREE) {
      expect(text).toContain(`'${path.length === 1 ? ` ${path[0]}` : path.join(" ")}'`);
      for (const flag of options.flatMap(({ flags }) => flags))
        expect(text, `${path.join(" ")} ${flag}`).toContain(
          shell === "fish" ? ` -${flag.startsWith("--") ? `l ${flag.slice(2)}` : `s ${flag.slice(1)}`} ` : flag,
        );
    }
  });

  describe.skipIf(!isThere(shell))("executed by the shell", () => {
    test("offers commands, and kinds after decide", () => {
      const below = TREE[0]?.commands.map(({ name }) => name) ?? [];
      expect(offered(shell, "").toSorted()).toEqual(below.toSorted());
      expect(offered(shell, "decide", "").toSorted()).toEqual(KINDS.toSorted());
      expect(offered(shell, "decide", "ev")).toEqual(["eviction"]);
      expect(offered(shell, "help", "hist")).toEqual(["history"]);
      expect(offered(shell, "help", "decide", "ev")).toEqual(["eviction"]);
      expect(offered(shell, "man", "hist")).toEqual(["history"]);
      expect(offered(shell, "man", "decide", "ev")).toEqual(["eviction"]);
      expect(offered(shell, "man", "--d")).toEqual(["--dir"]);
      expect(offered(shell, "schema", "ev")).toEqual(["eviction"]);
      expect(offered(shell, "completion", "")).toEqual(expect.arrayContaining([...SHELLS]));
    });

    test.each([[""], ["decide eviction"], ["decide allocatable"], ["lint"], ["history removals"], ["exec"]])(
      "offers the options of `nodewise %s`",
      (words) => {
        const { path, options } = TREE.find((one) => one.path.join(" ") === words) as (typeof TREE)[number];
        const long = options.flatMap(({ flags }) => flags.filter((flag) => flag.startsWith("--")));
        expect(offered(shell, ...path, "--").toSorted()).toEqual(long.toSorted());
      },
    );

    test("offers an option's choices, files, or nothing", () => {
      expect(offered(shell, "decide", "allocatable", "-o", "").toSorted()).toEqual(
        ["table", "json", "yaml", "karpenter"].toSorted(),
      );
      expect(offered(shell, "decide", "eviction", "--output", "j")).toEqual(["json"]);
      expect(offered(shell, "decide", "eviction", "--node", "eviction", "--snapshot", "")).toContain("a file.yaml");
      expect(offered(shell, "decide", "eviction", "--kubelet", "").toSorted()).toEqual(VERSIONS);
      expect(offered(shell, "history", "--since", "")).toEqual([]);
    });

    test("offers choices for --option=value too", () => {
      // bash splits the option into three words, and fish offers the whole word
      const words = { bash: ["--output", "=", "j"], zsh: ["--output=j"], fish: ["--output=j"] }[shell];
      const found = offered(shell, "decide", "eviction", ...words);
      expect(found).toEqual([shell === "fish" ? "--output=json" : "json"]);
    });

    test("offers the known machine names, and files", () => {
      const all = offered(shell, "decide", "cpus", "--machine", "");
      expect(all).toEqual(expect.arrayContaining([...machineNames(), "a file.yaml"]));
      expect(offered(shell, "lint", "--machine", "")).toEqual(all);
      expect(offered(shell, "decide", "cpus", "--snapshot", "")).not.toContain("xeon-2s");
      expect(offered(shell, "machines", "xe")).toEqual(["xeon-2s", "xeon-2s-snc2"]);
    });
  });
});

describe("decide KIND --help", () => {
  test.each(KINDS)("of %s shows what it decides, its own options and examples", async (kind) => {
    const { stdout } = await run(["decide", kind, "--help"]);
    expect(stdout.replaceAll(/\s+/g, " ")).toContain(`Decide ${specOf(kind).decides}.`);
    const examples = /\nExamples:\n((?: {2}.*\n)+)/.exec(stdout)?.[1]?.trimEnd().split("\n") ?? [];
    expect(examples).toHaveLength(KIND_EXAMPLES[kind].commands.length);
    const shown = new Set(stdout.match(/--[a-z][\w-]*/g));
    for (const line of examples) expect(line).toContain(`nodewise decide ${kind} `);
    expect([shown.has("--outcomes"), shown.has("--operation"), shown.has("--facts"), shown.has("--policy")]).toEqual([
      kind === "probes",
      kind === "image-gc" || kind === "container-gc",
      specOf(kind).facts !== null,
      specOf(kind).traits.policy !== null,
    ]);
  });
});

describe("an unknown word", () => {
  test.each([
    [["decide", "evict"], "eviction"],
    [["decide", "evction"], "eviction"],
    [["evict"], "decide eviction"],
    [["evction"], "decide eviction"],
    [["histry"], "history"],
    [["decide", "gc"], "image-gc or container-gc"],
    [["help", "decide", "admision"], "admission"],
    [["history", "shw"], "show"],
    [["probes", "outcome"], "outcomes"],
    [["devices", "alocate"], "allocate"],
    [["token", "creat"], "create"],
  ])("in %j suggests %s", async (args, meant) => {
    const ran = await run(args);
    expect(ran).toMatchObject({ code: EXIT.badInput, stdout: "" });
    expect(ran.stderr).toBe(
      `nodewise: unknown command '${args.at(-1)}'\n(Did you mean ${meant}?)\n(\`--help\` shows the choices)\n`,
    );
  });

  test.each([
    [["history", "--kind", "evction"], "eviction"],
    [["history", "--reason", "OutOfCpu"], "OutOfcpu"],
    [["agreement", "--verdict", "difers"], "differs"],
    [["agreement", "--reason", "evicted"], "Evicted"],
    [["completion", "bsh"], "bash"],
    [["history", "--kind", "evict"], "eviction"],
    [["replay", "--kind", "gc"], "image-gc or container-gc"],
    [["decide", "eviction", "--explain", "reas"], "reasons"],
    [["gc", "image"], "images"],
    [["lint", "-o", "sari"], "sarif"],
  ])("in %j gets the closest word suggested", async (args, meant) => {
    const { code, stderr } = await run(args);
    expect(code).toBe(2);
    expect(stderr).toContain(`\n(Did you mean ${meant}?)\n`);
  });

  test("suggests a subcommand whatever follows, and no command unlike it", async () => {
    expect((await run(["history", "shw", "0e1c1a2b"])).stderr).toContain("(Did you mean show?)");
    expect((await run(["history", "nothing-like-it"])).stderr).toBe(
      "nodewise: unknown command 'nothing-like-it'\n(`--help` shows the choices)\n",
    );
    expect(await run(["history", "help", "show"])).toEqual(await run(["history", "show", "--help"]));
  });

  test("gets a suggestion for names of machines and schemas too", async () => {
    for (const args of [
      ["machines", "xeon-s2"],
      ["decide", "cpus", "--machine", "xeon-s2"],
    ])
      expect(await run(args)).toMatchObject({
        code: EXIT.badInput,
        stderr: expect.stringContaining("did you mean xeon-2s?"),
      });
    for (const word of ["evction", "evict"])
      expect((await run(["schema", word])).stderr).toContain("did you mean eviction?");
    expect((await run(["man", "evict"])).stderr).toContain("did you mean `decide eviction`?");
  });

  test("help COMMAND equals COMMAND --help", async () => {
    for (const path of [[], ["decide"], ["decide", "eviction"], ["token", "create"], ["help"]])
      expect(await run(["help", ...path])).toEqual(await run([...path, "--help"]));
    expect(await run(["decide", "help", "cpus"])).toEqual(await run(["decide", "cpus", "--help"]));
  });

  test("version equals --version, and prints data too", async () => {
    expect(await run(["version"])).toEqual(await run(["--version"]));
    expect(JSON.parse((await run(["version", "-o", "json"])).stdout)).toHaveProperty("kubelets");
  });
});

describe("man", () => {
  const words = (text: string): string => text.replaceAll(/\\[-e&]/g, "-").replaceAll(/\s+/g, " ");

  test("writes a page for each command, with its texts", async () => {
    const dir = join(scratch, "man1");
    expect(await run(["man", "--dir", dir])).toMatchObject({ code: 0, stdout: "" });
    expect(readdirSync(dir).toSorted()).toEqual(
      TREE.map(({ path }) => `${["nodewise", ...path].join("-")}.1`).toSorted(),
    );
    for (const { path, options, commands, command } of TREE) {
      const page = words(readFileSync(join(dir, `${["nodewise", ...path].join("-")}.1`), "utf8"));
      for (const { flags } of options) expect(page, path.join(" ")).toContain(flags[0]);
      for (const { name } of commands)
        expect(page, path.join(" ")).toContain(`${["nodewise", ...path, name].join("-")}`);
      expect(page).toContain(words(command.description()));
    }
  });

  test.skipIf(!isThere("man") || !isThere("groff"))("writes pages that groff renders without warnings", async () => {
    for (const path of [[], ["decide", "eviction"], ["lint"], ["exec"]]) {
      const { stdout } = await run(["man", ...path]);
      const drawn = spawnSync("groff", ["-man", "-Tutf8", "-wall", "-z"], { input: stdout, encoding: "utf8" });
      expect(drawn).toMatchObject({ status: 0, stderr: "" });
    }
  });

  test("suggests a command for an unknown one", async () => {
    expect(await run(["man", "decide", "evicton"])).toMatchObject({
      code: EXIT.badInput,
      stderr: "nodewise: there is no command `decide evicton`; did you mean `decide eviction`?\n",
    });
  });
});

test("options may precede the kind", async () => {
  const options = ["--node", manifest("node.yaml"), "-o", "json"];
  expect(await run(["decide", ...options, "allocatable"])).toEqual(await run(["decide", "allocatable", ...options]));
});
