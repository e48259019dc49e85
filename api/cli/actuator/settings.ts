import { join, resolve } from "node:path";
import {
  type ActuatorConfig,
  checkSettings,
  readSettingsFile,
  type SettingsFile,
} from "../../../actuator/core/config.ts";
import type { SettingFault } from "../../../actuator/core/setting-faults.ts";
import { err, ok, type Result } from "../../base/result.ts";
import { stateHome } from "../api-options.ts";
import type { Cli, LogFlags } from "../cli.ts";

/** Flags under commander's names, which equal the settings' own. */
export interface ActuatorFlags extends LogFlags, Readonly<Record<string, unknown>> {
  readonly output: "table" | "json";
  readonly settings?: string;
  readonly once?: boolean;
  readonly dryRun?: boolean;
  readonly failOnDrift?: boolean;
  readonly removeOrphans: boolean;
}

/** The settings file and the flags for settings; a command's other flags are ignored. */
type SettingsFlags = Pick<ActuatorFlags, "settings" | "dryRun" | "removeOrphans"> & Readonly<Record<string, unknown>>;

const NO_FILE: SettingsFile = { settings: {}, faultText: ({ setting, message }) => `${setting}: ${message}` };

/** The settings from the file, then flags, then --dry-run. Errors: every fault, each with its file and line, or its flag. */
export async function configOf(
  given: SettingsFlags,
  env: Cli["env"],
): Promise<Result<ActuatorConfig, readonly string[]>> {
  const flags = flagsOf(given);
  const file = given.settings === undefined ? ok(NO_FILE) : await readSettingsFile(given.settings);
  if (!file.ok) return file;
  const wanted: Readonly<Record<string, unknown>> = {
    stateDir: join(stateHome(env), "actuator"),
    ...file.value.settings,
    ...Object.fromEntries(Array.from(flags, ([setting, { value }]) => [setting, value])),
  };
  const checked = checkSettings(wanted);
  // a dry run shows what these settings would do, so it rejects the same values
  const config = checked.ok && given.dryRun === true ? checkSettings(withoutDoing(wanted)) : checked;
  if (!config.ok) return err(config.error.map((fault) => faultText(fault, flags, file.value)));
  const { manifests } = config.value;
  // absolute, as problems of a directory name it
  return ok(manifests === undefined ? config.value : { ...config.value, manifests: resolve(manifests) });
}

interface Flag {
  readonly flag: string;
  readonly value: unknown;
}

/** The flags by the settings' own names. */
function flagsOf(given: SettingsFlags): ReadonlyMap<string, Flag> {
  const { output: _output, settings: _settings, once: _once, dryRun: _dry, failOnDrift: _fail, ...others } = given;
  const { logFormat: _format, logLevel: _level, removeOrphans, ...rest } = others;
  const flags = Object.entries(rest).map(([name, value]) => [SETTING_OF[name] ?? name, { flag: flagOf(name), value }]);
  // commander sets true if the flag is absent
  const orphans = removeOrphans ? [] : [["removeOrphans", { flag: "--no-remove-orphans", value: false }]];
  return new Map([...flags, ...orphans] as [string, Flag][]);
}
const flagOf = (name: string): string => `--${name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`;

const faultText = (fault: SettingFault, flags: ReadonlyMap<string, Flag>, file: SettingsFile): string => {
  const { setting, message } = fault;
  const given = flags.get(setting);
  if (given !== undefined) return `${given.flag}: ${message}`;
  return setting in file.settings ? file.faultText(fault) : `${setting}: ${message}`;
};

/** Settings that have another name in commander. */
const SETTING_OF: Readonly<Record<string, string>> = {
  minimumContainerTtlDuration: "minimumContainerTTL",
  containerGcPeriodSeconds: "containerGCPeriodSeconds",
  imageGcPeriodSeconds: "imageGCPeriodSeconds",
};

/** The same settings, changing nothing on the machine. */
const withoutDoing = (settings: Readonly<Record<string, unknown>>) => ({
  ...settings,
  mode: "observe",
  ...(settings["garbageCollection"] === "enforce" ? { garbageCollection: "observe" } : {}),
  ...(settings["pods"] === "enforce" ? { pods: "off" } : {}),
  ...(settings["devicePlugins"] === "serve" ? { devicePlugins: "off" } : {}),
  ...(settings["draDrivers"] === "serve" ? { draDrivers: "off" } : {}),
});
