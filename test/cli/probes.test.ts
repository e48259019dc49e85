import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { QUIRKS } from "../../api/decide/probes/worker-state.ts";
import { PROBE_FINDINGS, PROBE_QUIRKS } from "../../api/model/probes-decision.ts";
import { NEWEST } from "../../api/profiles/index.ts";
import { PROBE_FINDING, PROBES_SENTENCES } from "../../api/text/sentences/probes.ts";
import { scratchFolder } from "../kit/scratch.ts";
import { manifest, NO_VERSION, run } from "./run.ts";

const scratch = scratchFolder();
const file = (name: string, text: string): string => {
  const path = join(scratch, name);
  writeFileSync(path, text);
  return path;
};

const PROBED = manifest("probed.yaml");
const POD = readFileSync(PROBED, "utf8");

describe.concurrent("decide probes", () => {
  test("draws the dry run, lists the changes, and says what is wrong with the settings", async () => {
    const scripts = ["--startup", "fail*2,ok", "--liveness", "ok*2,fail*3,ok", "--readiness", "ok*3,fail,ok"];
    const ran = await run(["decide", "probes", "--pod", PROBED, ...scripts, "--seconds", "40"]);
    expect(ran).toMatchObject({ code: 1, stderr: "" });
    const [drawn] = ran.stdout.split("\nevents\n");
    expect(drawn).toBe(`(no node given) · probes · ${NEWEST.policyVersion}
assumed: ${NO_VERSION}
RESTARTS  shop/web in 40s: 1 restart, the first at 25s

            |0s       |10s      |20s      |30s      |40s
app
  status    ░░░░█████████▒███████████R███████████████
  startup   x x o---------------------o--------------
  liveness       o    o    x    x    x----o    o    o
  readiness     o  o  o  x  o  o  o  oo  o  o  o  o
█ ready   ▒ started, not ready   ░ runs, not started   R restarted
x failed   o ok   - on hold until there is another container
a cell is 1s

 AT  CONTAINER  OF         WHAT
 0s  app        container  starts
 0s  app        startup    not yet (c0)
 0s  app        liveness   not yet (c0)
 0s  app        readiness  not yet (c0)
 4s  app        startup    Success (c0)
 4s  app        readiness  Success (c0)
 4s  app        status     started
 4s  app        status     ready
 5s  app        liveness   Success (c0)
13s  app        readiness  Failure (c0)
13s  app        readiness  Success (c0)
13s  app        status     not ready
13s  app        status     ready
25s  app        liveness   Failure (c0)
25s  app        container  is ended (c0): liveness failed
25s  app        container  starts again (c1)
25s  app        status     not ready
26s  app        startup    not yet (c1)
26s  app        startup    Success (c1)
26s  app        readiness  not yet (c1)
26s  app        readiness  Success (c1)
26s  app        status     started
26s  app        status     ready
30s  app        liveness   Success (c1)
`);
  });

  test("names outcomes that are assumed", async () => {
    const { stdout } = await run(["decide", "probes", "--pod", PROBED, "--liveness", "ok"]);
    expect(stdout.split("\n")[1]).toBe(
      `assumed: ${NO_VERSION}; each attempt of startup and readiness succeeds; --outcomes, or --startup and --readiness, set others`,
    );
    const none = await run(["decide", "probes", "--pod", PROBED, "-o", "json"]);
    expect(JSON.parse(none.stdout).assumed).toEqual({
      outcomes: { startup: ["ok"], liveness: ["ok"], readiness: ["ok"] },
    });
  });

  test("prints the same as data", async () => {
    const ran = await run(["decide", "probes", "--pod", PROBED, "--outcomes", "ok*5,fail", "-o", "json"]);
    const { kind, verdict, decision, next } = JSON.parse(ran.stdout);
    expect({ kind, verdict, next, code: ran.code }).toEqual({
      kind: "probes",
      verdict: "restarts",
      next: null,
      code: 1,
    });
    expect(decision.containers[0].probes.map(({ type }: { type: string }) => type)).toEqual([
      "startup",
      "liveness",
      "readiness",
    ]);
    const calm = await run(["decide", "probes", "--pod", PROBED, "--outcomes", "ok"]);
    expect(calm.code).toBe(0);
    expect(calm.stdout).toContain("READY  shop/web in 2m: since 0s, no restart");
  });

  test("--strict shows the documented behaviour, and otherwise the quirks are named", async () => {
    const args = [
      "decide",
      "probes",
      "--pod",
      PROBED,
      "--liveness",
      "error",
      "--container",
      "app",
      "--explain",
      "full",
    ];
    const kubelet = await run(args);
    expect(kubelet.code).toBe(0);
    expect(kubelet.stdout).toMatch(/- error-discarded, app liveness, \d+ times: .*kubernetes #106682/);
    expect(kubelet.stdout).toContain("[quirk_error_discarded times=");
    const strict = await run([...args, "--strict"]);
    expect(strict.code).toBe(1);
    expect(strict.stdout).toContain("strict: the documented behaviour in place of the kubelet's quirks");
  });

  test("reports faults with the file's line or the option", async () => {
    const bad = file(
      "bad.yaml",
      POD.replace("periodSeconds: 5,", "periodSeconds: -5,").replace("{path: /ready", "{p: /r"),
    );
    const faults: readonly (readonly [readonly string[], string | RegExp])[] = [
      [
        ["--pod", bad],
        /bad\.yaml:10:\d+: ask\.pod\.spec\.containers\[0\]\.livenessProbe\.periodSeconds: must be greater/,
      ],
      [["--pod", PROBED, "--liveness", "ok,nope"], "--liveness: `nope` is no outcome"],
      [["--pod", PROBED, "--outcomes", "nope"], "--outcomes: `nope` is no outcome"],
      [["--pod", PROBED, "--container", "db"], "--container: the pod has no container `db`; it has app"],
      [["--pod", PROBED, "--seconds", "soon"], "--seconds soon: must be a number"],
      [["--pod", PROBED, "--jitter", "2"], "--jitter: too big"],
    ];
    for (const [args, fault] of faults) {
      const ran = await run(["decide", "probes", ...args]);
      expect(ran, args.join(" ")).toMatchObject({ code: 2, stdout: "" });
      expect(ran.stderr).toMatch(fault);
    }
    // a fault that concerns all types is reported once
    const once = await run(["decide", "probes", "--pod", PROBED, "--outcomes", "nope"]);
    expect(once.stderr.trimEnd().split("\n")).toHaveLength(1);
    const none = await run(["decide", "probes", "--outcomes", "ok"]);
    expect(none).toMatchObject({ code: 1, stdout: "" });
    expect(none.stderr).toContain("probes refused (needs_input): whose probes are to be run dry?");
    const other = await run(["decide", "cgroups", "--outcomes", "ok", "--pods", PROBED]);
    expect(other.stderr).toContain("--outcomes: cgroups runs no probes: leave it out; probes does");
  });
});

test("every finding and quirk of the probe worker has a sentence", () => {
  const numbers = { strict: false, times: 2 };
  for (const code of PROBE_FINDINGS) expect(PROBE_FINDING[code]({})).not.toBe("");
  const ofManager = ["later-containers-unprobed", "ticks-together", "readiness-out-of-turn"];
  expect(QUIRKS.map(({ code }) => code).sort()).toEqual([...ofManager, ...PROBE_QUIRKS].sort());
  const sentences: Readonly<Record<string, (n: typeof numbers) => string>> = PROBES_SENTENCES;
  for (const code of PROBE_QUIRKS) {
    expect(sentences[`quirk_${code.replaceAll("-", "_")}`]?.(numbers), code).toMatch(/\(2 times\)$/);
  }
});
