import { spawnSync } from "node:child_process";
import { existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import { basename, join } from "node:path";
import { expect, test, vi } from "vitest";
import { pack } from "../../cli/packed.ts";
import { NODE, run } from "../../cli/run.ts";
import { scratch } from "../manifests/scratch.ts";

vi.setConfig({ testTimeout: 300_000 });

const ROOT = join(import.meta.dirname, "../../..");
const DEPLOY = join(ROOT, "actuator/deploy");
const PREFIX = "/opt/nodewise";
/** The directory in which the API of the compose file, which runs as this user, keeps its history. */
const HISTORY = "/var/lib/nodewise";
const NOBODY = 65_532;
const lines = readFileSync(join(DEPLOY, "Containerfile"), "utf8").replaceAll("\\\n", "").split("\n");
/** The arguments of an instruction. Commands are lists of words, so none runs in a shell. */
const after = (instruction: string): readonly string[] =>
  lines.filter((line) => line.startsWith(`${instruction} `)).map((line) => line.slice(instruction.length + 1));
const words = (list: string | undefined): readonly string[] => JSON.parse(list ?? "[]") as string[];

/** Every file below a directory, with its relative path. */
const filesIn = (dir: string): string[] =>
  readdirSync(dir, { recursive: true, withFileTypes: true })
    .filter((one) => one.isFile())
    .map((one) => join(one.parentPath, one.name).slice(dir.length + 1));

test("the image contains the packed package, and lacks nothing that the program needs", async () => {
  const image = scratch({});
  const app = join(image, PREFIX);
  const file = pack(join(image, "packed"));
  const [copied] = after("COPY");
  expect(copied).toBe("nodewise-*.tgz /tmp/nodewise.tgz");
  expect(basename(file)).toMatch(/^nodewise-.*\.tgz$/);
  const ignored = readFileSync(join(ROOT, ".dockerignore"), "utf8").split("\n");
  expect(ignored).toEqual(expect.arrayContaining(["*", "!nodewise-*.tgz"]));

  const [install, ...others] = after("RUN").map(words);
  const history = join(image, HISTORY);
  const here = (word: string): string =>
    word.replace("/tmp/nodewise.tgz", file).replace(PREFIX, app).replace(HISTORY, history);
  const execute = ([program = "", ...args]: readonly string[]): void => {
    const { status, stderr } = spawnSync(program, args.map(here), { encoding: "utf8", cwd: image });
    expect([program, status, stderr.replace(/^npm warn.*\n/gm, "")]).toEqual([program, 0, ""]);
  };
  execute(install ?? []);
  const packages = join(app, "lib/node_modules/nodewise/node_modules");
  const before = filesIn(packages);
  // only root may change the owner of directories
  const isRoot = process.geteuid?.() === 0;
  others.filter(([program]) => isRoot || program !== "install").forEach(execute);
  const compose = readFileSync(join(ROOT, "api/deploy/compose.yaml"), "utf8");
  expect(compose).toContain(`volumes: ["history:${HISTORY}"]\n    user: "${NOBODY}:${NOBODY}"`);
  if (isRoot) expect(statSync(history)).toMatchObject({ uid: NOBODY, gid: NOBODY });
  const left = new Set(filesIn(packages));
  const gone = before.filter((one) => !left.has(one));
  expect(gone.length).toBeGreaterThan(10);
  const isForOthers = /\.d\.ts$|\/prebuilds\/(?:darwin|win32|linuxmusl)-|^better-sqlite3\/deps\//;
  expect(gone.filter((one) => !isForOthers.test(one))).toEqual([]);
  for (const source of after("COPY --from=package")) expect(existsSync(here(source.split(" ")[0] ?? ""))).toBe(true);

  const [node, entry = ""] = words(after("ENTRYPOINT")[0]);
  expect([node, words(after("CMD")[0])]).toEqual(["node", ["actuator", "--settings", "/etc/nodewise/actuator.yaml"]]);
  const ask = (...args: readonly string[]) => run(args, { launcher: here(entry), node: NODE });
  const settings = join(DEPLOY, "actuator.yaml");
  const state = ["--state-dir", join(image, "state")];
  const pass = await ask("actuator", "--settings", settings, "--once", "-o", "json", ...state);
  expect([pass.code, JSON.parse(pass.stdout).decidedBy]).toEqual([0, "here"]);
  const token = await ask("token", "create", "n1", "--scope", "decide", "--data-dir", join(image, "data"));
  expect([token.code, token.stdout]).toEqual([0, expect.stringMatching(/^nw_/m)]);
});
