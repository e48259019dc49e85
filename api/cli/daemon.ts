import "./jitless.ts";
import { addActuator } from "./actuator/command.ts";
import { runCommandLine } from "./program.ts";

/** The command line of a daemon, which loads no other command: each module permanently costs memory. */
export const main = (argv: readonly string[]): Promise<void> => runCommandLine(argv, [addActuator]);
