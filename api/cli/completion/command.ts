import { Argument, type Command } from "commander";
import { ok } from "../../base/result.ts";
import { type Cli, examples, finish } from "../cli.ts";
import { EXIT } from "../terminal.ts";
import type { Shell } from "./scripts.ts";

const SHELLS: readonly Shell[] = ["bash", "zsh", "fish"];

export function addCompletion(program: Command, cli: Cli): void {
  const command = program
    .command("completion")
    .summary("Print a script for completions in a shell")
    .description("Print a script with which a shell completes commands, options and their values.")
    .addArgument(new Argument("<shell>", "whose").choices(SHELLS))
    .action((shell: Shell) =>
      finish(cli, async () => {
        const { completionScript } = await import("./scripts.ts");
        cli.terminal.write(completionScript(shell, program));
        return ok(EXIT.ok);
      }),
    );
  examples(
    command,
    "source <(nodewise completion bash)                                         # this bash; for every one, the next line",
    "nodewise completion bash > ~/.local/share/bash-completion/completions/nodewise",
    "nodewise completion zsh > ~/.zfunc/_nodewise                               # with `fpath+=~/.zfunc` before compinit in ~/.zshrc",
    "nodewise completion fish > ~/.config/fish/completions/nodewise.fish",
  );
}
