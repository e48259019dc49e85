import { Agent, request as httpRequest } from "node:http";
import { KINDS } from "../../api/model/decision.ts";
import { type FuzzAnswer, faultOf } from "./contract.ts";
import { ownServer } from "./own-server.ts";
import { decisionOf, type FuzzRequest, type Known, requestOf } from "./requests.ts";

export interface FuzzOptions {
  readonly seed: number;
  readonly seconds: number;
  /** Sends only this one of the seed's requests. */
  readonly only?: number;
}
export interface Finding {
  /** The number of the request within the seed. */
  readonly n: number;
  readonly request: FuzzRequest;
  readonly fault: string;
}
export interface FuzzReport {
  readonly findings: readonly Finding[];
  readonly requests: number;
  /** The number of answers with each status. */
  readonly statuses: Readonly<Record<number, number>>;
}

/** The number of parallel requests, and the number of findings after which a run ends. */
const [LANES, MAX_FINDINGS] = [4, 20];
const PATIENCE_MS = 60_000;

/**
 * Sends mutated requests for some seconds to its own server on loopback, and checks every answer against the contract.
 */
export async function fuzz({ seed, seconds, only }: FuzzOptions): Promise<FuzzReport> {
  const { url, child, close } = await ownServer();
  const agent = new Agent({ keepAlive: true, maxSockets: LANES });
  const findings: Finding[] = [];
  const statuses: Record<number, number> = {};
  let requests = 0;
  try {
    const known = await history(url, agent);
    const until = performance.now() + seconds * 1000;
    let next = only ?? 0;
    const lane = async (): Promise<void> => {
      while (performance.now() < until && findings.length < MAX_FINDINGS && child.exitCode === null) {
        if (only !== undefined && next > only) return;
        const n = next++;
        const request = requestOf(seed, n, known);
        const fault = await send(url, agent, request).then(
          (answer) => {
            statuses[answer.status] = (statuses[answer.status] ?? 0) + 1;
            return faultOf(request, answer);
          },
          (error: Error) => `no answer: ${error.message}`,
        );
        requests++;
        if (fault !== null) findings.push({ n, request, fault });
      }
    };
    await Promise.all(Array.from({ length: only === undefined ? LANES : 1 }, lane));
    if (child.exitCode !== null || child.signalCode !== null) {
      const fault = `the server ended: ${child.exitCode ?? child.signalCode}`;
      findings.push({ n: next - 1, request: requestOf(seed, next - 1, known), fault });
    }
  } finally {
    agent.destroy();
    await close();
  }
  return { findings, requests, statuses };
}

/** Records a decision of every kind, so that requests can read them. */
async function history(url: string, agent: Agent): Promise<Known> {
  const made: { id: string; snapshotId: string; node: string }[] = [];
  for (const kind of KINDS) {
    const body = Buffer.from(JSON.stringify(decisionOf(kind)));
    const headers = { "content-type": "application/json" };
    const answer = await send(url, agent, { method: "POST", target: `/v1/decisions/${kind}`, headers, body });
    if (answer.status === 200) made.push(JSON.parse(answer.text));
  }
  const of = (name: "id" | "snapshotId" | "node"): readonly string[] => [...new Set(made.map((one) => one[name]))];
  return { decisions: of("id"), snapshots: of("snapshotId"), nodes: [...of("node"), "n1", "nobody"] };
}

/** Sends one request. Live updates are read up to their first event. */
function send(url: string, agent: Agent, { method, target, headers, body }: FuzzRequest): Promise<FuzzAnswer> {
  return new Promise((resolve, reject) => {
    const length = body === null ? {} : { "content-length": body.length };
    const asked = httpRequest(`${url}/`, { agent, method, path: target, headers: { ...headers, ...length } });
    asked.setTimeout(PATIENCE_MS, () => asked.destroy(new Error(`none within ${PATIENCE_MS / 1000} s`)));
    asked.on("error", reject);
    asked.on("response", (response) => {
      const { statusCode: status = 0 } = response;
      const isLive = response.headers["content-type"] === "text/event-stream";
      const chunks: Buffer[] = [];
      const done = (): void => resolve({ status, headers: response.headers, text: Buffer.concat(chunks).toString() });
      response.on("data", (chunk: Buffer) => {
        chunks.push(chunk);
        if (isLive) {
          done();
          asked.destroy();
        }
      });
      response.on("end", done).on("error", reject);
    });
    asked.end(body ?? undefined);
  });
}

/** The command that repeats one finding. */
export const again = (seed: number, { n }: Finding): string => `npm run fuzz -- --seed ${seed} --only ${n}`;
/** The text about a finding. */
export const findingText = (seed: number, finding: Finding): string => {
  const { fault, request } = finding;
  const { method, target, headers, body } = request;
  const start =
    body === null ? "" : `\n  ${body.length} bytes: ${JSON.stringify(Buffer.from(body).toString("latin1", 0, 300))}`;
  return `${fault}\n  ${method} ${target} ${JSON.stringify(headers)}${start}\n  again: ${again(seed, finding)}`;
};
