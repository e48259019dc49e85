import { type Command, InvalidArgumentError, Option } from "commander";
import { DEFAULT_STATUS_LISTEN } from "../../actuator/status/listen.ts";

/** Where the status of a daemon is read from. */
export const sourceOptions = (command: Command): Command =>
  command
    .option("--status-url <url>", "the daemon's own address, its statusListen", `http://${DEFAULT_STATUS_LISTEN}`)
    .addOption(
      new Option("--state-dir <dir>", "or what the daemon last wrote into its state directory").conflicts("statusUrl"),
    );

export const watchOption = (): Option =>
  new Option("-w, --watch [seconds]", "again and again until Ctrl-C").argParser(watchSeconds).preset("2");

function watchSeconds(text: string): number {
  const number = Number(text);
  if (number >= 0.1 && number <= 3600) return number;
  throw new InvalidArgumentError("Expected seconds from 0.1 to 3600.");
}
