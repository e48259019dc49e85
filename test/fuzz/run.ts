import { parseArgs } from "node:util";
import { historyFile } from "../../db/open/node.ts";
import { openNode } from "../../db/sqlite/node/open.ts";
import { value } from "../contract/store-rows.ts";
import { findingText, fuzz } from "./fuzz.ts";
import { ownServer } from "./own-server.ts";
import { schemathesis, whyNot } from "./schemathesis.ts";

const USAGE =
  "npm run fuzz -- [--seconds N] [--seed N] [--only N | --schemathesis]: ends with 1 where something was found";
const { help, schemathesis: isSchemathesis, ...values } = given();
if (help === true) {
  console.log(USAGE);
  process.exit(0);
}
function given() {
  try {
    const text = { type: "string" } as const;
    const flag = { type: "boolean" } as const;
    const help = { ...flag, short: "h" } as const;
    return parseArgs({ options: { seconds: text, seed: text, only: text, schemathesis: flag, help } }).values;
  } catch (error) {
    console.error(`${error instanceof Error ? error.message : String(error)}\n${USAGE}`);
    process.exit(2);
  }
}
function wholeNumber(name: keyof typeof values, otherwise: number): number {
  const text = values[name] ?? String(otherwise);
  if (/^\d{1,9}$/.test(text)) return Number(text);
  console.error(`--${name}: expected a whole number, found \`${text}\``);
  process.exit(2);
}
const seed = wholeNumber("seed", Math.floor(Math.random() * 1e9));
const seconds = wholeNumber("seconds", 60);
const only = values.only === undefined ? {} : { only: wholeNumber("only", 0) };

console.log(`seed ${seed}, ${seconds} s`);
if (isSchemathesis === true) {
  if (whyNot !== undefined) {
    console.error(whyNot);
    process.exit(2);
  }
  const { url, dataDir, close } = await ownServer();
  const store = value(openNode({ file: historyFile(dataDir) }));
  const runs = await schemathesis({ url, store, seed, seconds, folder: dataDir });
  for (const { message } of runs) console.log(message);
  await store.close();
  await close();
  process.exit(runs.every(({ code }) => code === 0) ? 0 : 1);
}
const { findings, requests, statuses } = await fuzz({ seed, seconds, ...only });
for (const finding of findings) console.log(findingText(seed, finding));
const counts = Object.entries(statuses).map(([status, count]) => `${count} × ${status}`);
console.log(`${requests} requests: ${counts.join(", ")}; ${findings.length} findings`);
process.exitCode = findings.length === 0 ? 0 : 1;
