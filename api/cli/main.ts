import { addActuator } from "./actuator/command.ts";
import { addAdvise } from "./advise/command.ts";
import { addAgreement } from "./agreement/command.ts";
import { addApi } from "./api/command.ts";
import type { Cli } from "./cli.ts";
import { addCollect } from "./collect/command.ts";
import { addCompletion } from "./completion/command.ts";
import { addExec, addLogs } from "./containers/command.ts";
import { addDecide } from "./decide/command.ts";
import { addDevices } from "./devices/command.ts";
import { addGc } from "./gc/command.ts";
import { addHistory } from "./history/command.ts";
import { addKinds } from "./kinds/command.ts";
import { addLint } from "./lint/command.ts";
import { addMachines } from "./machines/command.ts";
import { addMan } from "./man/command.ts";
import { addPods, addTop } from "./pods/command.ts";
import { addProbes } from "./probes/command.ts";
import { runCommandLine } from "./program.ts";
import { addReplay } from "./replay/command.ts";
import { addSchema } from "./schema/command.ts";
import { addSnapshot } from "./snapshot/command.ts";
import { addTakeover } from "./takeover/command.ts";
import { addTest } from "./test/command.ts";
import { addToken } from "./token/command.ts";
import { addUp } from "./up/command.ts";
import { addUpgrade } from "./upgrade/command.ts";
import { addVersion } from "./version/command.ts";
import { addWhy } from "./why/command.ts";

export const COMMANDS = [
  ...[addUp, addWhy, addDecide, addSnapshot, addMachines, addKinds, addSchema, addApi, addCollect],
  ...[addActuator, addPods, addTop, addLogs, addExec, addProbes, addDevices, addGc, addTakeover],
  ...[addToken, addHistory, addAgreement, addReplay, addLint, addTest, addUpgrade, addAdvise],
  ...[addVersion, addCompletion, addMan],
];

/** The whole command line, for this process or another `Cli`. */
export const main = (argv: readonly string[], cli?: Cli): Promise<void> => runCommandLine(argv, COMMANDS, cli);
