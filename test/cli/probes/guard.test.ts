import { expect, test } from "vitest";
import { NO_VERSION, run } from "../run.ts";

const failed = (name: string) => ({ containerId: `id-${name}`, container: `shop/${name}/app`, group: name });
const ASK = {
  guard: { windowSeconds: 30, least: { share: 0.5 }, holdSeconds: 120 },
  groups: 5,
  known: [
    { ...failed("a"), failedAgoMs: 9_000, heldForMs: null },
    { ...failed("b"), failedAgoMs: 10_000, heldForMs: 20_000 },
    { ...failed("d"), failedAgoMs: 5_000, heldForMs: 5_000 },
  ],
  failed: ["b", "e"].map(failed),
  recovered: ["id-d"],
};
const ask = (input: unknown, ...args: string[]) =>
  run(["decide", "probe-guard", "--ask", "-", ...args], { input: JSON.stringify(input) });

test("decide probe-guard prints whose kill is held and why", async () => {
  const { code, stdout, stderr } = await ask(ASK, "--explain", "reasons");
  expect([code, stderr]).toEqual([0, ""]);
  expect(stdout.split("\n").map((line) => line.replace(/ {2,}/g, "  "))).toEqual([
    expect.stringMatching(/^\(no node given\) · probe-guard · /),
    `assumed: ${NO_VERSION}`,
    "STORM  2 kills held",
    "",
    "liveness probes of 3 unrelated groups of 5 failed within 30 s; from 3 on kills are held, for 120 s at most",
    "  storm: liveness probes of 3 unrelated groups of 5 failed within 30 s: from 3 on (50 % of them, two at least) it counts as a problem of the node",
    "",
    "CONTAINER  KILL",
    "shop/b/app  held for 20s",
    "  hold: it failed again; its restart has been held for 20s of at most 120 s",
    "shop/e/app  held from now on",
    "  hold: its restart is held from now on, for 120 s at most: other containers fail too",
    "shop/d/app  not restarted: recovered",
    "  released: it answers again: nothing is killed",
    "",
  ]);
});

test("decide probe-guard restarts when too few fail, and says what is missing without --ask", async () => {
  const few = await ask({ ...ASK, known: [], failed: [failed("a")], recovered: [] });
  expect([few.code, few.stdout]).toEqual([1, expect.stringMatching(/RESTARTS {2}1 container, no kill is held/)]);
  expect(few.stdout).toMatch(/shop\/a\/app +restarted\n/);
  const nothing = await run(["decide", "probe-guard"]);
  expect([nothing.code, nothing.stderr]).toEqual([1, expect.stringMatching(/refused \(needs_input\).*--ask/)]);
  const wrong = await ask({ ...ASK, groups: -1 });
  expect([wrong.code, wrong.stderr]).toEqual([2, expect.stringMatching(/standard input:1:\d+: ask\.groups: /)]);
});
