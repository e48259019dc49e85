import { Option } from "commander";
import { LOG_LEVELS, type LogLevel } from "../../actuator/status/log-level.ts";

export interface LogGiven {
  readonly logFormat: "text" | "json";
  readonly logLevel: LogLevel;
}

export const logFormatOption = (): Option =>
  new Option("--log-format <format>", "json: a line each of what happens, on standard error")
    .choices(["text", "json"])
    .default("text");
export const logLevelOption = (): Option =>
  new Option("--log-level <level>", "the least that is told").choices(LOG_LEVELS).default("info");
