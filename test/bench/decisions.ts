import { join } from "node:path";
import { DECIDERS, decideKind } from "../../api/decide/kinds/index.ts";
import { decodeSnapshot } from "../../api/model/decode.ts";
import { effectiveSnapshot } from "../../api/profiles/effective.ts";
import { PROFILES } from "../../api/profiles/index.ts";
import type { Profile } from "../../api/profiles/profile.ts";
import { v1_36 } from "../../api/profiles/v1_36.ts";
import { readCases, suiteFiles } from "../conformance/run.ts";
import type { Suite } from "../conformance/suite.ts";
import { SUITES } from "../conformance/suites.ts";
import { realSnapshot } from "../kit/real-node.ts";

export interface DecisionFigure {
  readonly name: string;
  /** `decideNanos` and `parseNanos` are medians per case. */
  readonly decideNanos: number;
  readonly parseNanos: number;
  readonly ratio: number;
}
const ROUNDS = 15;
/** How long both run before they are measured, so that V8 has compiled them as in a process that runs for a while. */
const WARM_UP_NANOS = 300_000_000n;

const median = (list: number[]): number => list.sort((a, b) => a - b)[list.length >> 1] as number;
/** Nanoseconds per call: the median of rounds that alternate, so that a change of the machine's speed affects both. */
function compare(decide: () => void, parse: () => void, calls: number): { decide: number; parse: number } {
  const times = { decide: [] as number[], parse: [] as number[] };
  for (const begin = process.hrtime.bigint(); process.hrtime.bigint() - begin < WARM_UP_NANOS; ) {
    decide();
    parse();
  }
  for (let round = 0; round < ROUNDS; round++) {
    for (const [name, run] of [
      ["decide", decide],
      ["parse", parse],
    ] as const) {
      const start = process.hrtime.bigint();
      run();
      times[name].push(Number(process.hrtime.bigint() - start) / calls);
    }
  }
  return { decide: median(times.decide), parse: median(times.parse) };
}

const figure = (name: string, t: { decide: number; parse: number }): DecisionFigure => ({
  name,
  decideNanos: t.decide,
  parseNanos: t.parse,
  ratio: t.decide / t.parse,
});

/**
 * Every vector suite of kubelet 1.36: the time to decide the validated input, compared with JSON.parse of the same
 * input.
 */
export function benchSuites(): readonly DecisionFigure[] {
  const { files } = suiteFiles(join(import.meta.dirname, "..", "vectors/1.36.3"));
  const measured = files.filter(({ suite }) => suite !== "probe-http"); // its cases wait for servers
  return measured.map(({ suite, path, profile }) => {
    const inputs = readCases(path).map((c) => c.in);
    const texts = inputs.map((input) => JSON.stringify(input));
    const { read, decide } = SUITES[suite] as Suite;
    const checked = inputs.map((input) => read(input, profile));
    const run = () => {
      for (const input of checked) decide(input, profile);
    };
    const parse = () => {
      for (const text of texts) JSON.parse(text);
    };
    return figure(suite, compare(run, parse, inputs.length));
  });
}

/**
 * The captured node: the time to validate its snapshot and to make each decision, compared with JSON.parse of the whole
 * body.
 */
export function benchRealNode(): readonly DecisionFigure[] {
  const raw = realSnapshot();
  const text = JSON.stringify(raw);
  const decoded = decodeSnapshot(raw);
  if (!decoded.ok) throw new Error(JSON.stringify(decoded.error));
  const { value: snapshot } = decoded;
  // each decision applies the defaults again
  const asked = () =>
    ({ snapshot: effectiveSnapshot(snapshot), facts: {}, ask: undefined, explain: "reasons" }) as const;
  const CALLS = 50;
  const times = (run: () => void) => () => {
    for (let i = 0; i < CALLS; i++) run();
  };
  const parse = times(() => JSON.parse(text));
  return [
    figure(
      "check the snapshot",
      compare(
        times(() => decodeSnapshot(raw)),
        parse,
        CALLS,
      ),
    ),
    figure(
      "decide cgroups",
      compare(
        times(() => DECIDERS.cgroups(asked())),
        parse,
        CALLS,
      ),
    ),
    figure(
      "decide allocatable",
      compare(
        times(() => DECIDERS.allocatable(asked())),
        parse,
        CALLS,
      ),
    ),
  ];
}

/** The captured node decided under each kubelet version, compared with its own version, 1.36. */
export function benchProfiles(): readonly DecisionFigure[] {
  const decoded = decodeSnapshot(realSnapshot());
  if (!decoded.ok) throw new Error(JSON.stringify(decoded.error));
  const { value: snapshot } = decoded;
  const CALLS = 50;
  const deciding = (kind: "cgroups" | "allocatable", profile: Profile) => () => {
    for (let i = 0; i < CALLS; i++) {
      decideKind(kind, { snapshot, facts: {}, ask: undefined, explain: "reasons" }, profile);
    }
  };
  return PROFILES.flatMap((profile) =>
    (["allocatable", "cgroups"] as const).map((kind) =>
      figure(`${kind} of ${profile.version}`, compare(deciding(kind, profile), deciding(kind, v1_36), CALLS)),
    ),
  );
}
