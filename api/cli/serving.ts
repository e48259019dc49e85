import { addApi } from "./api/command.ts";
import { runCommandLine } from "./program.ts";

/** The command line of an API, which loads no other command: each module permanently costs memory. */
export const main = (argv: readonly string[]): Promise<void> => runCommandLine(argv, [addApi]);
