import { ok, type Result } from "../model/result.ts";
import { errorFields } from "../observe/log.ts";
import { bodyProblem, ndjsonStream } from "./body.ts";
import { decide, spliced } from "./decide.ts";
import { type Line, lines } from "./lines.ts";
import { type Problem, problem, problemText } from "./problem.ts";
import { type Exchange, queryOf, type Reply } from "./route.ts";

/** Lines that are decided at a time; their answers keep the order of the lines. */
const WINDOW = 16;
export const NDJSON_TYPE = "application/x-ndjson";

/** POST /v1/batch: a decision a line. Reads and answers as a stream, in constant memory. */
export function postBatch(exchange: Exchange): Result<Reply, Problem> {
  const query = queryOf(exchange, []);
  if (!query.ok) return query;
  const stream = ndjsonStream(exchange);
  if (!stream.ok) return stream;
  const answers = ordered(exchange, lines(stream.value, exchange.ports.limits.bodyBytes));
  const { promise: done, resolve } = Promise.withResolvers<void>();
  return ok({ status: 200, type: NDJSON_TYPE, body: streamed(answers, resolve), done });
}

/** Answers ahead of a reader that sends its whole batch before it reads: up to here it is not held up. */
const AHEAD_BYTES = 32 * 1024 * 1024;

function streamed(answers: AsyncGenerator<string>, onEnd: () => void): ReadableStream<Uint8Array> {
  const encoder = new TextEncoder();
  const source = {
    async pull(controller: ReadableStreamDefaultController<Uint8Array>) {
      const next = await answers.next();
      if (next.done !== true) return controller.enqueue(encoder.encode(`${next.value}\n`));
      controller.close();
      onEnd();
    },
    cancel() {
      onEnd();
      void answers.return(undefined);
    },
  };
  return new ReadableStream(source, new ByteLengthQueuingStrategy({ highWaterMark: AHEAD_BYTES }));
}

/** Every answer as soon as it and those before it are there, while the next line is still on its way. */
async function* ordered(exchange: Exchange, source: AsyncGenerator<Line>): AsyncGenerator<string> {
  const underWay: Promise<string>[] = [];
  let reading: Promise<IteratorResult<Line>> | null = source.next();
  try {
    while (reading !== null || underWay.length > 0) {
      const [first] = underWay;
      const contenders: Promise<{ answered: string } | { read: IteratorResult<Line> }>[] = [];
      if (first !== undefined) contenders.push(first.then((answered) => ({ answered })));
      if (reading !== null && underWay.length < WINDOW) contenders.push(reading.then((read) => ({ read })));
      const next = await Promise.race(contenders);
      if ("answered" in next) {
        underWay.shift();
        yield next.answered;
      } else if (next.read.done === true) reading = null;
      else {
        underWay.push(answer(exchange, next.read.value));
        reading = source.next();
      }
    }
  } finally {
    void source.return(undefined);
    await Promise.all(underWay);
  }
}

/** Never fails: what is wrong with a line is answered on a line. */
async function answer({ ports, caller, requestId }: Exchange, { number, bytes }: Line): Promise<string> {
  const head = JSON.stringify({ line: number });
  let outcome: Result<string, Problem>;
  try {
    outcome = bytes.ok
      ? await decide({ ports, caller, requestId, kind: null, bytes: bytes.value, key: undefined })
      : bodyProblem(bytes.error, ports.limits.bodyBytes);
  } catch (error) {
    ports.log.error({ requestId, line: number, ...errorFields(error) }, "internal fault");
    outcome = problem("internal", `an internal fault; the log has it under requestId \`${requestId}\``);
  }
  return outcome.ok
    ? spliced(head, outcome.value)
    : spliced(head, `{"problem":${problemText(outcome.error, requestId)}}`);
}
