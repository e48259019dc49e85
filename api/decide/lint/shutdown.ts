import { type LintFinding, note, warning } from "./finding.ts";
import { spanText } from "./given.ts";
import type { LintInput } from "./input.ts";

const ALL = "shutdownGracePeriod";
const CRITICAL = "shutdownGracePeriodCriticalPods";

/** How a graceful shutdown's time is shared: the last part is of critical pods alone. kubelet 1.36: migrateConfig of nodeshutdown. */
export function shutdownFindings({ given, isOn }: LintInput): readonly LintFinding[] {
  const all = given.nanos(ALL, 0);
  const critical = given.nanos(CRITICAL, 0);
  if (all <= 0 || !isOn("GracefulNodeShutdown")) return [];
  if (critical === all) {
    const message = `${CRITICAL} is all of ${ALL} ${spanText(all)}: other pods get no time to end`;
    const advice = `leave a part to them: ${CRITICAL} is taken off the end of ${ALL}`;
    return [warning({ code: "shutdown-without-others", field: CRITICAL, message, advice })];
  }
  if (critical !== 0) return [];
  const message = `without ${CRITICAL} all of ${ALL} ${spanText(all)} is of the other pods: critical ones get no time to end`;
  return [
    note({
      code: "shutdown-without-critical",
      field: CRITICAL,
      message,
      advice: "set it to a part of it, such as a third",
    }),
  ];
}
