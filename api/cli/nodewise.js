#!/usr/bin/env node
// biome-ignore-all lint: Nodes as old as 12.20 must run this file to be told what to do
/**
 * Starts the command line on a Node that is new enough: on this one, or else on the nearest node_modules/.bin/node, which a
 * checkout has, with the same arguments. Without either: one message, exit 3. (better-sqlite3 ends older Nodes without a word.)
 */
import { createRequire } from "module";

// imported as ES modules they would load all that each of their names needs, which takes 15 ms of every start
const require = createRequire(import.meta.url);
const { existsSync, realpathSync } = require("fs");
const { dirname, join } = require("path");
const { pathToFileURL } = require("url");

const CANNOT_RUN = 3;
const SIGNALS = ["SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT"];
/** Stands in the environment of a child of this file. */
const LAUNCHED = "NODEWISE_LAUNCHED";

const home = dirname(realpathSync(process.argv[1]));
const root = dirname(dirname(home));

/** A checkout runs its sources; a package has none of them, and runs what `npm run build` made. */
const source = join(home, "start.ts");
const isCheckout = existsSync(source);

/** 22.18 or newer. For a checkout's sources not 23.0 to 23.5, which do not strip types by themselves. */
function isNewEnough(version) {
  const [major, minor] = version.replace("v", "").split(".").map(Number);
  if (major === 23) return minor >= 6 || !isCheckout;
  return major > 23 || (major === 22 && minor >= 18);
}

function fail(message) {
  process.stderr.write(`nodewise: ${message}\n`);
  process.exitCode = CANNOT_RUN;
}

/** The first node_modules/.bin/node at or above `dir` that is new enough and runs on this machine. */
function findNode(dir) {
  const node = join(dir, "node_modules/.bin/node");
  if (existsSync(node)) {
    const { status, stdout } = require("child_process").spawnSync(node, ["--version"], { encoding: "utf8" });
    if (status === 0 && isNewEnough(stdout)) return node;
  }
  return dir === dirname(dir) ? undefined : findNode(dirname(dir));
}

/** Signals go on to the child; its end becomes ours: an exit code, or the signal that ended it. */
function runOn(node) {
  let child;
  const forward = (signal) => child.kill(signal);
  // before the child is there: a signal that comes while it starts must not leave it behind
  for (const signal of SIGNALS) process.on(signal, forward);
  child = require("child_process").spawn(node, process.argv.slice(1), {
    stdio: ["inherit", "inherit", "inherit", "ipc"],
    env: { ...process.env, [LAUNCHED]: "1" },
  });
  child.on("error", (error) => fail(`cannot start ${node}: ${error.message}; run \`npm install\` again`));
  child.on("exit", (code, signal) => {
    for (const one of SIGNALS) process.removeListener(one, forward);
    if (signal === null) process.exitCode = code;
    else process.kill(process.pid, signal);
  });
}

/** The child ends when its launcher is gone, which SIGKILL lets tell nobody. */
function endWithLauncher() {
  delete process.env[LAUNCHED];
  const end = () => process.kill(process.pid, "SIGTERM");
  if (!process.connected) return end();
  process.on("disconnect", end);
  process.channel.unref();
}

async function run() {
  if (LAUNCHED in process.env) endWithLauncher();
  const { start } = await import(pathToFileURL(isCheckout ? source : join(root, "dist/start.js")).href);
  return start(process.argv.slice(2));
}

function explainMissing() {
  const needs = `needs Node 22.18 or newer, this is ${process.versions.node}`;
  if (!isCheckout) return fail(`${needs}: start nodewise with a newer Node`);
  const looked = `no such node_modules/.bin/node is at or above ${root}`;
  const advice = "run `npm install` there (without --omit=optional; it brings a Node for Linux on x64 and arm64)";
  fail(`${needs}, and ${looked}: ${advice}, or start nodewise with a newer Node`);
}

if (isNewEnough(process.versions.node)) {
  run().catch((error) => {
    if (error.code !== "ERR_MODULE_NOT_FOUND") return fail(`cannot start: ${error.message}`);
    fail(`its packages are not installed (${error.message.split("\n")[0]}): run \`npm install\` in ${root}`);
  });
} else {
  const node = findNode(home);
  if (node === undefined) explainMissing();
  else runOn(node);
}
