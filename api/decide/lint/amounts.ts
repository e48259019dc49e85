import { compare, fromUnits, isZero, milliValue } from "../../model/amount.ts";
import { goQuantity, isSignal } from "../eviction/threshold.ts";
import { entryField, error, type LintFinding, note, warning } from "./finding.ts";
import type { LintInput } from "./input.ts";

/** Checks that a resource or a signal is counted in bytes; for a signal that does not exist this is unknown. */
const isBytes = (name: string): boolean =>
  name === "memory" ||
  name === "ephemeral-storage" ||
  (isSignal(name) && name.endsWith(".available") && name !== "pid.available");
const MAPS = ["kubeReserved", "systemReserved", "evictionHard", "evictionSoft", "evictionMinimumReclaim"] as const;
/** Nobody means less than this of memory or of a disk. */
const FEWEST_BYTES = 64 * 1024;
const LEAST_LOG_BYTES = 4096;

/** Amounts that are read, and are hardly what was meant. */
export function amountDoubts(input: LintInput): readonly LintFinding[] {
  const { given } = input;
  const maps = MAPS.flatMap((field) =>
    given
      .texts(field)
      .filter(([name]) => isBytes(name))
      .flatMap(([name, text]) =>
        doubt(entryField(field, name), text, FEWEST_BYTES, (v) => ({ [field]: { [name]: v } })),
      ),
  );
  const log = "containerLogMaxSize";
  const ofLog = given.has(log) ? doubt(log, given.text(log), LEAST_LOG_BYTES, (v) => ({ [log]: v })) : [];
  return [...maps, ...ofLog, ...unlimitedLog(input), ...roundedCpus(input), ...smallThreshold(input)];
}

function doubt(field: string, text: string, fewest: number, patch: (v: string) => unknown): readonly LintFinding[] {
  if (text.endsWith("%")) return [];
  const read = goQuantity(text);
  if (!read.ok || isZero(read.value.amount) || read.value.amount < 0) return [];
  const milli = /^(\d+(?:\.\d+)?)m$/.exec(text);
  if (milli !== null) {
    const message = `${text} is thousandths of a byte: m is milli, and Mi or M is meant by megabytes`;
    const fix = patch(`${milli[1]}Mi`);
    return [error({ code: "milli-bytes", field, message, advice: `write ${milli[1]}Mi`, fix })];
  }
  if (compare(read.value.amount, fromUnits(fewest)) >= 0) return [];
  const message = `${text} is a number of bytes, and so few are next to nothing`;
  const code = "bytes-without-unit";
  if (field.startsWith("eviction") && /^\d{1,2}$/.test(text))
    return [warning({ code, field, message, advice: "was Mi, Gi or % left out?" })];
  const fix = /^\d+$/.test(text) ? patch(`${text}Mi`) : null;
  return [warning({ code, field, message, advice: "was Mi or Gi left out?", fix })];
}

function unlimitedLog({ given, profile: { defaults } }: LintInput): readonly LintFinding[] {
  const field = "containerLogMaxSize";
  const read = goQuantity(given.text(field) || defaults.containerLogMaxSize);
  if (!read.ok || read.value.amount >= 0) return [];
  const message = "a negative size switches the rotation of container logs off: they grow until the disk is full";
  return [
    warning({
      code: "logs-not-rotated",
      field,
      message,
      advice: `give a size; the default is ${defaults.containerLogMaxSize}`,
      fix: { [field]: null },
    }),
  ];
}

/** kubelet 1.36: NewManager of the CPU manager. */
function roundedCpus({ config }: LintInput): readonly LintFinding[] {
  if (config.cpuManagerPolicy !== "static" || config.reservedSystemCPUs !== "") return [];
  const milli = (["kubeReserved", "systemReserved"] as const).reduce(
    (sum, list) => sum + milliValue(config[list]["cpu"]?.amount ?? 0),
    0,
  );
  if (milli === 0 || milli % 1000 === 0) return [];
  const whole = Math.ceil(milli / 1000);
  const message = `kubeReserved and systemReserved reserve ${milli}m of CPU, and the static policy keeps whole CPUs back: ${whole}. Pods are promised the rest, which no exclusive CPU is for`;
  const advice = `reserve ${whole * 1000}m together, or name the CPUs in reservedSystemCPUs`;
  return [note({ code: "reserved-cpu-rounded", field: "kubeReserved", message, advice })];
}

const SMALL = 32 * 1024 * 1024;
function smallThreshold({ config }: LintInput): readonly LintFinding[] {
  const text = config.evictionHard["memory.available"];
  if (text === undefined || text.endsWith("%")) return [];
  const read = goQuantity(text);
  const isSmall = read.ok && compare(read.value.amount, fromUnits(SMALL)) < 0;
  if (!isSmall || compare(read.value.amount, fromUnits(FEWEST_BYTES)) < 0) return [];
  return [
    warning({
      code: "memory-threshold-small",
      field: entryField("evictionHard", "memory.available"),
      message: `with ${text} left the kernel has begun to kill before the kubelet looks, which it does every 10s`,
      advice: `the default is ${config.profile.defaults.evictionHard["memory.available"]}; large nodes want more`,
    }),
  ];
}
