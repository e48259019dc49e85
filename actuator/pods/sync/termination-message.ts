import { join } from "node:path";
import { perObject } from "../../../api/base/cache.ts";
import {
  type RuntimeContainer,
  type RuntimePod,
  TERMINATION_MESSAGE_PATH,
  TERMINATION_MESSAGE_POLICY,
} from "../../containerd/cri.ts";
import { codeOf, goErrorText } from "../../core/error-text.ts";
import { readTail } from "../../core/record-file.ts";
import type { PodPlaces } from "../pod-clock.ts";
import type { CompleteContainer } from "../records/pod-set.ts";
import { containerAt, type PodRoots, placesOf, terminationMessageAt } from "../volumes/places.ts";

const MAX_BYTES = 4096;

/**
 * The message of an exited container: the runtime's, followed by the content of the container's message file, or, if it
 * failed and its pod says so, the end of its log. kubelet 1.36: convertToKubeContainerStatus.
 */
export function withTerminationMessage(container: RuntimeContainer, places: PodPlaces): RuntimeContainer {
  if (container.state !== "exited") return container;
  const message = messageOf(container, places);
  if (message === "") return container;
  return { ...container, message: container.message === "" ? message : `${container.message}: ${message}` };
}

function messageOf(container: RuntimeContainer, places: PodPlaces): string {
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
    return readTail(file, MAX_BYTES).bytes.toString("utf8");
  } catch (error) {
    return codeOf(error) === "ENOENT" ? "" : `Error on reading termination log ${file}: ${goErrorText(error)}`;
  }
}

/** Completes exited containers with their termination messages, each read once. */
export function terminationMessages(roots: PodRoots): CompleteContainer {
  const complete = perObject((container: RuntimeContainer, pod: RuntimePod): RuntimeContainer => {
    const places = placesOf(roots, pod);
    return places.ok ? withTerminationMessage(container, places.value) : container;
  });
  return (pod, container) => (container.state === "exited" ? complete(container, pod) : container);
}

/** Lines of a log that the kubelet shows in a termination message. */
const MAX_LINES = 80;
const MAX_LOG_BYTES = 2048;
/** More bytes than MAX_LINES lines take with a runtime that breaks lines at 16 KiB. */
const TAIL_BYTES = 64 * 1024;
/** `2026-01-01T00:00:00.000000000Z stdout F text`; P is a part, which the next line continues. */
const LINE = /^\S+ (?:stdout|stderr) ([FP])\S* /;

/**
 * The end of a container's log in CRI's format, both streams, without times: at most 80 lines and 2048 bytes. Throws
 * the system's errors. kubelet 1.36: readLastStringFromContainerLogs.
 */
function lastOfLog(path: string): string {
  const { bytes, isCut } = readTail(path, TAIL_BYTES);
  const lines = splitLines(bytes);
  // the first line lacks its beginning; if it is the only one, it consists of text only
  const texts =
    isCut && lines.length === 1
      ? lines
      : lines
          .slice(isCut ? 1 : 0)
          .slice(-MAX_LINES)
          .map(textOf);
  return Buffer.concat(texts).subarray(-MAX_LOG_BYTES).toString("utf8");
}

/** Splits lines and keeps their line feeds; bytes, since a partial line may end within a character. */
function splitLines(bytes: Buffer): readonly Buffer[] {
  const lines: Buffer[] = [];
  for (let from = 0; from < bytes.length; ) {
    const feed = bytes.indexOf(0x0a, from);
    const to = feed < 0 ? bytes.length : feed + 1;
    lines.push(bytes.subarray(from, to));
    from = to;
  }
  return lines;
}

/** The text of a log line; empty for a line of another form. */
function textOf(line: Buffer): Buffer {
  const head = LINE.exec(line.subarray(0, 128).toString("latin1"));
  if (head === null) return Buffer.alloc(0);
  const isPart = head[1] === "P" && line.at(-1) === 0x0a;
  return line.subarray(head[0].length, isPart ? -1 : undefined);
}
