import { type Command, Option } from "commander";
import { wholeNumber } from "./whole-number.ts";

/** What `api` and `up` take of commander. */
export interface ApiGiven {
  readonly port?: number;
  readonly host?: string;
  readonly dataDir?: string;
  readonly allowHost?: readonly string[];
  readonly maxBodyBytes?: number;
  readonly maxConcurrency?: number;
  readonly keepDays?: number;
  readonly keepDecisions?: number;
}

export const dataDirOption = (): Option =>
  new Option(
    "--data-dir <dir>",
    "where the history is (default: $XDG_STATE_HOME/nodewise or ~/.local/state/nodewise)",
  ).env("NODEWISE_DATA_DIR");

export const withApiOptions = (command: Command): Command =>
  command
    .addOption(
      new Option("--port <n>", "0: any free one (default: 8787)")
        .env("NODEWISE_PORT")
        .argParser(wholeNumber(0, 65_535)),
    )
    .addOption(new Option("--host <address>", "address to listen on (default: 127.0.0.1)").env("NODEWISE_HOST"))
    .addOption(dataDirOption())
    .option("--allow-host <name...>", "names, beside loopback's, by which requests without a token may call")
    .addOption(new Option("--max-body-bytes <n>", "largest request (default: 8 MiB)").argParser(wholeNumber(1024)))
    .addOption(
      new Option("--max-concurrency <n>", "requests of one caller at a time (default: 512)").argParser(wholeNumber(1)),
    )
    .addOption(
      new Option(
        "--keep-days <n>",
        "age at which decisions go: at the start, then every ten minutes (default: 30)",
      ).argParser(wholeNumber(1, 36_500)),
    )
    .addOption(
      new Option(
        "--keep-decisions <n>",
        "decisions kept of each node; more go at the same times (default: 10000)",
      ).argParser(wholeNumber(1)),
    );
