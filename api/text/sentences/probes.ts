import { durationText } from "../time-text.ts";
import { many, type Sentences, type Words } from "./words.ts";

const quirk =
  (kubelet: string, documented: string): Words =>
  (n) =>
    `${n["strict"] === true && documented !== "" ? documented : kubelet} (${many(n["times"], "time")})`;

/** What the reasons of `probes` say. */
export const PROBES_SENTENCES: Sentences = {
  started_at_once: () => "no startup probe: it is started as soon as it runs",
  ready_once_started: () => "no readiness probe: it is ready as long as it is started",
  slowest_detection: (n) =>
    `a fault is noticed within ${durationText(Number(n["slowestFailureMs"]))}: ${many(n["failureThreshold"], "failure")}, every ${n["periodSeconds"]} s, ${n["timeoutSeconds"]} s each`,
  ended_by_probe: (n) =>
    `${n["id"]} is ended ${n["endedAtMs"] === "" ? "" : `at ${durationText(Number(n["endedAtMs"]))} `}because ${n["endedBy"]} failed`,
  quirk_counters_carry_over: quirk("the run of results of the container before counted here too", ""),
  quirk_error_discarded: quirk("it could not be asked, three times in a row: that was thrown away", ""),
  quirk_hang_discarded: quirk("the answer broke off, three times in a row: that was thrown away", ""),
  quirk_ready_kept_on_restart: quirk("the kubelet restarted: the container keeps its readiness until it is probed", ""),
};
