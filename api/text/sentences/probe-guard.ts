import { durationText } from "../time-text.ts";
import { many, type Sentences, type Words } from "./words.ts";

const share: Words = (n) =>
  n["share"] === undefined ? "" : ` (${Math.round(Number(n["share"]) * 100)} % of them, two at least)`;
const counted: Words = (n) =>
  `liveness probes of ${many(n["failingGroups"], "unrelated group")} of ${n["groups"]} failed within ${n["windowSeconds"]} s`;

/** What the reasons of `probe-guard` say. */
export const PROBE_GUARD_SENTENCES: Sentences = {
  probe_storm: (n) => `${counted(n)}: from ${n["leastGroups"]} on${share(n)} it is taken for a trouble of the node`,
  no_probe_storm: (n) => `${counted(n)}: it would take ${many(n["leastGroups"], "group")}${share(n)} to hold kills`,
  kill_held: (n) => `its kill waits from now on, for ${n["holdSeconds"]} s at most: others fail too`,
  kill_held_on: (n) =>
    `it failed again; its kill has waited for ${durationText(Number(n["heldForMs"]))} of at most ${n["holdSeconds"]} s`,
  kill_not_held: () => "it is restarted: too few fail together",
  released_recovered: () => "it answers again: nothing is killed",
  released_gone: () => "it is not probed any more: nothing is killed",
  released_calm: () => "it failed again, and too few fail together now: it is restarted",
  released_held_long_enough: (n) => `it failed again, and was held for ${n["holdSeconds"]} s: it is restarted`,
};
