import { appendFileSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { flushCompileCache } from "node:module";
import { join } from "node:path";
import type { NodeOperation } from "../../../api/decide/dra/claim-info.ts";
import { type Asked, TestDriver } from "../../actuator/dra/test-driver.ts";
import type { Call, DriverFaults } from "./driver-process.ts";

/**
 * A DRA driver as a separate process. It keeps its prepared claims and the calls it received on disk, so that it can be
 * killed at any moment. A repeated call changes nothing. `faults.json` sets its faults.
 */
const [dir = "", registry = "", name = ""] = process.argv.slice(2);
const prepared = join(dir, "prepared");
mkdirSync(prepared, { recursive: true });

const work = (operation: NodeOperation, { claims }: Asked): void => {
  for (const { uid } of claims) {
    if (operation === "NodePrepareResources") writeFileSync(join(prepared, uid), "");
    else rmSync(join(prepared, uid), { force: true });
  }
};
const MILLION = 1_000_000;
/** A field of a protobuf message whose value is a text or another message. */
const field = (number: number, content: string): string => {
  let size = content.length;
  let sizeText = "";
  for (; size > 127; size >>>= 7) sizeText += String.fromCharCode((size & 127) | 128);
  return String.fromCharCode((number << 3) | 2) + sizeText + String.fromCharCode(size) + content;
};
/** Encodes the answer by hand, because encoding a million objects at each call takes seconds. */
const millionDevices = ({ claims }: Asked): Buffer => {
  const devices = field(1, field(1, "gpu") + field(2, "n") + field(3, "device") + field(4, "ok")).repeat(MILLION);
  return Buffer.from(claims.map(({ uid }) => field(1, field(1, uid) + field(2, devices))).join(""), "latin1");
};
const millionClaims = (): Buffer => {
  const messages = Array.from({ length: MILLION }, (_, i) => field(1, field(1, `nobodys-${i}`) + field(2, "")));
  return Buffer.from(messages.join(""), "latin1");
};

function answer(operation: NodeOperation, asked: Asked): object | "hang" {
  const file = join(dir, "faults.json");
  const fault = existsSync(file) ? (JSON.parse(readFileSync(file, "utf8")) as DriverFaults)[operation] : undefined;
  if (fault !== "hangs") work(operation, asked);
  const call: Call = { operation, claims: asked.claims.map((claim) => claim.name) };
  appendFileSync(join(dir, "calls"), `${JSON.stringify(call)}\n`);
  switch (fault) {
    case "hangs":
    case "hangs when it has done it":
      return "hang";
    case "names another claim":
      return { claims: { "nobodys-0": {} } };
    case "leaves the claim out":
      return { claims: {} };
    case "has a million devices":
      return operation === "NodePrepareResources" ? millionDevices(asked) : millionClaims();
    case "has no CDI device of that name":
      return devicesOf(asked, `${name}/dev=nobodys`);
    default:
      return driver.usual(operation, asked);
  }
}
const devicesOf = ({ claims }: Asked, cdiId: string): object => {
  const devices = [{ requestNames: ["gpu"], poolName: "n", deviceName: "device", cdiDeviceIds: [cdiId] }];
  return { claims: Object.fromEntries(claims.map(({ uid }) => [uid, { devices }])) };
};

const driver = new TestDriver({
  dir: registry,
  name,
  cdi: false,
  answers: {
    NodePrepareResources: (asked) => answer("NodePrepareResources", asked),
    NodeUnprepareResources: (asked) => answer("NodeUnprepareResources", asked),
  },
});
// the driver before this one was killed and has left its socket
rmSync(driver.socketPath, { force: true });
await driver.serve();
// the driver is killed later, and would then leave nothing in the compile cache for the next one
flushCompileCache();
// the process that started the driver has exited
process.stdin.on("end", () => process.exit()).resume();
