import { expect, test } from "vitest";
import { daemonMetrics } from "../../../actuator/status/metrics.ts";
import { nodeStatus } from "../../kit/node-status.ts";

test("probe attempts, results, durations and waits are counted in a bounded number of series", async () => {
  const metrics = daemonMetrics();
  const { counters } = metrics;
  for (let i = 0; i < 3; i++) counters.probed("liveness", "success", 0.007);
  counters.probed("liveness", "failure", 2);
  counters.probed("readiness", "error", 0.3);
  counters.probeResult("readiness", "Failure");
  counters.probeLate(0.004);
  counters.probeLate(0.3);
  counters.execProbeWaited();
  counters.probeKillsHeld(4);
  const { text } = await metrics.render(nodeStatus());
  const lines = text.split("\n").filter((line) => line.includes("_probe_"));
  for (const line of [
    'nodewise_probe_attempts_total{type="liveness",result="success"} 3',
    'nodewise_probe_attempts_total{type="liveness",result="failure"} 1',
    'nodewise_probe_attempts_total{type="readiness",result="error"} 1',
    'nodewise_probe_results_total{type="readiness",result="Failure"} 1',
    'nodewise_probe_duration_seconds_bucket{le="0.005",type="liveness"} 0',
    'nodewise_probe_duration_seconds_bucket{le="0.01",type="liveness"} 3',
    'nodewise_probe_duration_seconds_count{type="liveness"} 4',
    'nodewise_probe_late_seconds_bucket{le="0.25"} 1',
    "nodewise_probe_late_seconds_count 2",
    "nodewise_probe_exec_overdue_total 1",
    "nodewise_liveness_probe_kills_deferred_total 4",
    "nodewise_probe_kills_held_total 4",
  ])
    expect(lines).toContain(line);
  // 12 attempts, 9 results, 3 durations with 14 lines each, 12 lines of lateness, 2 others, and 1 deprecated
  expect(lines.length).toBeLessThanOrEqual(12 + 9 + 42 + 12 + 2 + 1);
});
