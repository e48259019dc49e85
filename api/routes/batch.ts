import { ok, type Result } from "../model/result.ts";
import { errorFields } from "../observe/log.ts";
import { bodyProblem, ndjsonStream } from "./body.ts";
import { decide, spliced } from "./decide.ts";
import { type Line, lines } from "./lines.ts";
import { nextTurn } from "./next-turn.ts";
import { lineProblemText, type Problem, problem } from "./problem.ts";
import { type Exchange, queryOf, type Reply } from "./route.ts";

/** Lines that are decided at a time; their answers keep the order of the lines. */
const WINDOW = 16;
/** Lines answered with a problem, after which a batch ends: its sender has another format in mind. */
export const MOST_BAD_LINES = 1000;
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
  const underWay: Promise<LineAnswer>[] = [];
  let reading: Promise<IteratorResult<Line>> | null = source.next();
  let answered = 0;
  let bad = 0;
  let last = 0;
  try {
    while (reading !== null || underWay.length > 0) {
      const [first] = underWay;
      const contenders: Promise<{ answered: LineAnswer } | { read: IteratorResult<Line> }>[] = [];
      if (first !== undefined) contenders.push(first.then((answered) => ({ answered })));
      if (reading !== null && underWay.length < WINDOW) contenders.push(reading.then((read) => ({ read })));
      const next = await Promise.race(contenders);
      if ("answered" in next) {
        underWay.shift();
        yield next.answered.text;
        // lines that are decided at once never leave the turn, in which nobody else is served
        if (++answered % WINDOW === 0) await nextTurn();
        if (next.answered.isProblem && ++bad === MOST_BAD_LINES) reading = null;
      } else if (next.read.done === true) reading = null;
      else {
        last = next.read.value.number;
        underWay.push(answer(exchange, next.read.value));
        reading = source.next();
      }
    }
    if (bad >= MOST_BAD_LINES) yield lineText(last + 1, tooManyBadLines(last));
  } finally {
    void source.return(undefined);
    await Promise.all(underWay);
  }
}

interface LineAnswer {
  readonly text: string;
  readonly isProblem: boolean;
}
/** Never fails: what is wrong with a line is answered on a line. */
async function answer({ ports, caller, requestId }: Exchange, { number, bytes }: Line): Promise<LineAnswer> {
  let outcome: Result<string, Problem>;
  try {
    outcome = bytes.ok
      ? await decide({ ports, caller, requestId, kind: null, bytes: bytes.value, key: undefined })
      : bodyProblem(bytes.error, ports.limits.bodyBytes);
  } catch (error) {
    ports.log.error({ requestId, line: number, ...errorFields(error) }, "internal fault");
    outcome = problem("internal", `an internal fault; the log has it under requestId \`${requestId}\``);
  }
  return { text: lineText(number, outcome), isProblem: !outcome.ok };
}

const lineText = (number: number, outcome: Result<string, Problem>): string =>
  spliced(
    JSON.stringify({ line: number }),
    outcome.ok ? outcome.value : `{"problem":${lineProblemText(outcome.error)}}`,
  );

const tooManyBadLines = (last: number): Result<never, Problem> =>
  problem(
    "too_many_bad_lines",
    `${MOST_BAD_LINES} lines could not be answered, so the batch ends here: nothing after line ${last} was decided`,
  );
