import { parentPort, workerData } from "node:worker_threads";
import { errorFields } from "../observe/log.ts";
import { evaluator } from "../routes/evaluate.ts";
import type { Evaluation, Job } from "../routes/evaluation.ts";
import { sha256 } from "./digest.ts";

/** The entry of a thread that evaluates the jobs that it is sent, each for itself. It says when it is ready. */
export interface Order {
  readonly number: number;
  readonly job: Job;
}
export type Delivery =
  | "ready"
  | { readonly number: number; readonly evaluation: Evaluation }
  | { readonly number: number; readonly fault: string };

if (parentPort !== null && workerData?.evaluates === true) serve(parentPort);

function serve(port: NonNullable<typeof parentPort>): void {
  const evaluate = evaluator(sha256);
  const deliver = (delivery: Delivery): void => port.postMessage(delivery);
  port.on("message", async ({ number, job }: Order) => {
    try {
      deliver({ number, evaluation: await evaluate(job) });
    } catch (error) {
      deliver({ number, fault: String(errorFields(error)["stack"] ?? error) });
    }
  });
  deliver("ready");
}
