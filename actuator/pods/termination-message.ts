import { join } from "node:path";
import {
  type RuntimeContainer,
  TERMINATION_MESSAGE_PATH,
  TERMINATION_MESSAGE_POLICY,
} from "../lifecycle/runtime-pod.ts";
import { lastOfLog } from "./cri-log.ts";
import { readTail } from "./file-tail.ts";
import { codeOf, goErrorText } from "./go-error.ts";
import { containerAt } from "./places.ts";
import type { PodPlaces } from "./ports.ts";

const MOST_BYTES = 4096;

/** The name of the file, by the restart count: so it is found again without anybody's memory. The kubelet's is random. */
export const terminationMessageAt = (attempt: number): string => attempt.toString(16).padStart(8, "0");

/**
 * The message of a container that has exited: the runtime's, and behind it what the container left in its file, or where
 * it failed and its pod says so, the end of its log. kubelet 1.36: convertToKubeContainerStatus.
 */
export function withLastWords(container: RuntimeContainer, places: PodPlaces): RuntimeContainer {
  if (container.state !== "exited") return container;
  const words = lastWords(container, places);
  if (words === "") return container;
  return { ...container, message: container.message === "" ? words : `${container.message}: ${words}` };
}

function lastWords(container: RuntimeContainer, places: PodPlaces): string {
  const { annotations, exitCode, reason, logPath } = container;
  const mayLog =
    annotations[TERMINATION_MESSAGE_POLICY] === "FallbackToLogsOnError" &&
    exitCode !== 0 &&
    reason !== "ContainerCannotRun";
  const left = annotations[TERMINATION_MESSAGE_PATH] ? leftIn(container, places) : "";
  if (left !== "" || !mayLog) return left;
  try {
    return lastOfLog(logPath);
  } catch (error) {
    return `Error on reading termination message from logs: ${goErrorText(error)}`;
  }
}

function leftIn({ name, attempt }: RuntimeContainer, places: PodPlaces): string {
  const directory = containerAt(places, name);
  if (!directory.ok) return "";
  const file = join(directory.value, terminationMessageAt(attempt));
  try {
    return readTail(file, MOST_BYTES).bytes.toString("utf8");
  } catch (error) {
    return codeOf(error) === "ENOENT" ? "" : `Error on reading termination log ${file}: ${goErrorText(error)}`;
  }
}
