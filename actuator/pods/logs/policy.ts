import { configurationPath } from "../../../api/model/kubelet-configuration.ts";
import { err, ok, type Result } from "../../../api/model/result.ts";
import { effectiveDocument } from "../../../api/profiles/effective.ts";
import { NEWEST } from "../../../api/profiles/index.ts";
import { bytesIn, type Defaults, millisIn } from "../../../api/profiles/profile.ts";

/** The rotation of containers' logs: the fields containerLog* of a KubeletConfiguration. */
export interface LogPolicy {
  /** Bytes from which on a log is rotated; negative: never. */
  readonly maxSize: number;
  /** Files of one container, the current one among them. */
  readonly maxFiles: number;
  /** Logs that are rotated at the same time. */
  readonly maxWorkers: number;
  /** From look to look at their sizes. */
  readonly intervalMs: number;
}
/** `at 10485760 bytes, 5 files each,` */
export const policyText = ({ maxSize, maxFiles }: LogPolicy): string => `at ${maxSize} bytes, ${maxFiles} files each,`;

type Members = Readonly<Record<string, unknown>>;

/**
 * The log settings of a KubeletConfiguration (as in a file or /configz). Error: why a kubelet would not start with it, in its
 * words. kubelet 1.36: ValidateKubeletConfiguration, NewContainerLogManager.
 */
export async function logPolicyOf(configuration: unknown): Promise<Result<LogPolicy, string>> {
  const isWrapped = configurationPath(configuration).length > 0;
  const given = ((isWrapped ? (configuration as Members)["kubeletconfig"] : configuration) ?? {}) as Members;
  const own = Object.fromEntries(
    Object.entries(given).filter(([name, set]) => name.startsWith("containerLog") && set !== null),
  );
  if (Object.keys(own).length === 0) return ok(DEFAULT_LOG_POLICY);
  // most configurations say nothing of logs, and need no linter for that
  const { lintConfiguration } = await import("../../../api/decide/lint/lint.ts");
  const refusals = lintConfiguration(own).filter(({ severity }) => severity === "refuses-start");
  const wrong = refusals.filter(({ field }) => field in own).map(({ message }) => message);
  if (wrong.length > 0) return err(wrong.join("; "));
  return ok(policyIn(effectiveDocument(NEWEST, own)));
}

/** The longest delay of a timer. */
const LONGEST_MS = 2 ** 31 - 1;
/** Throws on a size or an interval that is none. */
function policyIn(configuration: Defaults): LogPolicy {
  return {
    maxSize: bytesIn(configuration.containerLogMaxSize),
    maxFiles: configuration.containerLogMaxFiles,
    maxWorkers: configuration.containerLogMaxWorkers,
    intervalMs: Math.min(millisIn(configuration.containerLogMonitorInterval), LONGEST_MS),
  };
}
export const DEFAULT_LOG_POLICY = policyIn(NEWEST.defaults);
