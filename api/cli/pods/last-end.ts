import type { ContainerEnd, ContainerRow } from "../../../actuator/status/node-status.ts";

/** How a container ended, and when: of an end that has no time 0, of its present state later than any. */
interface LastEnd {
  readonly name: string;
  readonly end: ContainerEnd;
  readonly atMs: number;
}

/** Of a pod's containers the end that was last, its own or that of the instance before; null: all did their work, or run for the first time. */
export const lastEndOf = (containers: readonly ContainerRow[]): LastEnd | null =>
  containers
    .flatMap(endOf)
    .reduce<LastEnd | null>((last, one) => (last === null || one.atMs > last.atMs ? one : last), null);

function endOf({ name, state, exitCode, reason, message, lastState }: ContainerRow): readonly LastEnd[] {
  if (state === "terminated")
    return exitCode === null || exitCode === 0
      ? []
      : [{ name, end: { exitCode, reason, message, finishedAt: null }, atMs: Number.POSITIVE_INFINITY }];
  if (lastState == null) return [];
  return [{ name, end: lastState, atMs: lastState.finishedAt === null ? 0 : Date.parse(lastState.finishedAt) }];
}

/** What the runtime says where it says no more than the exit code does. */
const PLAIN: readonly string[] = ["", "Error", "Completed"];

/** `exit 7`; where the runtime says more than that it failed or ended well, that too: `OOMKilled, exit 137`. */
export const endText = ({ exitCode, reason }: ContainerEnd): string =>
  PLAIN.includes(reason) ? `exit ${exitCode}` : `${reason}, exit ${exitCode}`;
/** `exit 7`, `OOMKilled`. */
export const shortEndText = ({ exitCode, reason }: ContainerEnd): string =>
  PLAIN.includes(reason) ? `exit ${exitCode}` : reason;
