import { SimPod } from "./sim-pod.ts";
import type { Timeline, TimelineInput } from "./timeline-input.ts";

/**
 * What the probes of one pod do on scripted answers: attempts, results, restarts, and when it was ready. Time is
 * simulated; it ends early after 20,000 attempts (`truncated`). The same input has the same answer.
 */
export const timelineOf = (input: TimelineInput): Timeline => new SimPod(input).run();
