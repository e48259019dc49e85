import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { createToken } from "../../api/http/auth/tokens.ts";
import type { Store } from "../../db/store.ts";
import { value } from "../contract/store-rows.ts";

const CACHE = process.env["XDG_CACHE_HOME"] || join(homedir(), ".cache");
/** The path at which `.ci/schemathesis` installs the program; `SCHEMATHESIS=/path` names another. */
const PROGRAM = process.env["SCHEMATHESIS"] ?? join(CACHE, "nodewise/schemathesis/bin/st");
const HOOKS = fileURLToPath(new URL("schemathesis_hooks.py", import.meta.url));
/** Why the program cannot be run; undefined: it can. */
export const whyNot = existsSync(PROGRAM) ? undefined : `there is no ${PROGRAM}; .ci/schemathesis installs it`;

/**
 * The phases of each run, and its share of the time. With one run, the first phase could use all the time on a loaded
 * machine.
 */
const RUNS = [
  { phases: ["Examples", "Coverage"], share: 0.4 },
  { phases: ["Fuzzing"], share: 0.35 },
  { phases: ["Stateful"], share: 0.25 },
] as const;

/**
 * An import stores the given rows unchanged, so made-up rows would appear in the answers of all other routes. An export
 * has rows with tuples of two lengths, whose `prefixItems` Schemathesis 4.32 treats as `items`, and reports as matching
 * no schema.
 */
const EXCLUDED = "/v1/history";

export interface SchemathesisOptions {
  readonly url: string;
  /** The history of the tested server. */
  readonly store: Store;
  readonly seed: number;
  readonly seconds: number;
  /** The folder for the findings. */
  readonly folder: string;
}

export interface SchemathesisRun {
  /** 0: no findings. */
  readonly code: number | null;
  readonly message: string;
  readonly phases: readonly string[];
}

/**
 * Checks a server against its own OpenAPI document for some seconds, with every phase and every check of Schemathesis.
 * schemathesis_hooks.py contains the exceptions that no schema can express.
 */
export async function schemathesis(options: SchemathesisOptions): Promise<readonly SchemathesisRun[]> {
  const { url, store, seed, seconds, folder } = options;
  const { token } = value(await createToken(store, { name: "fuzz", scopes: ["admin"], node: null, now: 1 }));
  const runs: SchemathesisRun[] = [];
  for (const { phases, share } of RUNS) {
    const given = {
      header: `Authorization: Bearer ${token}`,
      seed,
      phases: phases.join(",").toLowerCase(),
      workers: 1,
      // a slow and loaded machine takes long
      "request-timeout": 60,
      "generation-database": "none",
      "suppress-health-check": "all",
    };
    const named = Object.entries(given).map(([name, one]) => `--${name}=${one}`);
    const args = [
      "run",
      `${url}/openapi.json`,
      `--exclude-path=${EXCLUDED}`,
      "--no-color",
      "--no-shrink",
      "--continue-on-failure",
      ...named,
    ];
    const own = Math.max(1, Math.round(seconds * share));
    runs.push({ phases, ...(await longEnough(own, args, { phases, folder })) });
  }
  return runs;
}

/**
 * The minimum number of requests. A run takes as much time as needed for them, and for some in each phase, however slow
 * the machine is.
 */
export const LEAST = 10;
const LONGEST_SECONDS = 160;

async function longEnough(
  seconds: number,
  args: readonly string[],
  { phases, folder }: Pick<SchemathesisRun, "phases"> & { readonly folder: string },
): ReturnType<typeof run> {
  const done = await run([...args, `--max-time=${seconds}`], folder);
  const hasAll = phases.every((phase) => new RegExp(`✅ +${phase}$`, "m").test(done.message));
  const generated = Number(/(\d+) generated/.exec(done.message)?.[1] ?? 0);
  if (done.code !== 0 || (generated >= LEAST && hasAll) || seconds >= LONGEST_SECONDS) return done;
  return longEnough(2 * seconds, args, { phases, folder });
}

async function run(args: readonly string[], folder: string): Promise<Pick<SchemathesisRun, "code" | "message">> {
  const env = { ...process.env, SCHEMATHESIS_HOOKS: HOOKS, PYTHONDONTWRITEBYTECODE: "1", PYTHONHASHSEED: "0" };
  const child = spawn(PROGRAM, args, { cwd: folder, env, stdio: ["ignore", "pipe", "pipe"] });
  let message = "";
  for (const stream of [child.stdout, child.stderr]) stream.on("data", (chunk) => (message += chunk));
  const [code] = (await once(child, "close")) as [number | null];
  return { code, message };
}
