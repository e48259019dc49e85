import { err, ok, type Result } from "../base/result.ts";
import type { BodyFault, Reply } from "../dependencies.ts";
import { errorFields } from "../observe/log.ts";
import { type Problem, problem } from "../service/problem.ts";
import { yieldToEventLoop } from "../service/task-queue.ts";
import { bodyProblem, boundsOf, faultIn, ndjsonStream } from "./body.ts";
import { type BudgetLease, ChunkBuffer, rateOf } from "./body-budget.ts";
import { decide } from "./decide.ts";
import { lineProblemText } from "./problem.ts";
import { type Exchange, queryOf } from "./route.ts";

/** A line of a body: its number, from 1, and its bytes; or why there are none. */
interface Line {
  readonly number: number;
  readonly bytes: Result<Uint8Array, BodyFault>;
}
const NEWLINE = 0x0a;
const RETURN = 0x0d;
const BLANK: ReadonlySet<number> = new Set([0x20, 0x09, RETURN]);
/** The number of bytes without a line end after which other requests get a turn. */
const TURN_BYTES = 64 * 1024;

/** The end of the empty line at `from`, which ends in LF or CR LF; `from` if there is none. */
const blankTo = (chunk: Uint8Array, from: number): number => {
  if (chunk[from] === NEWLINE) return from + 1;
  return chunk[from] === RETURN && chunk[from + 1] === NEWLINE ? from + 2 : from;
};

interface LineBounds {
  /** The bytes of each line are taken from it, and given back once the line is answered. */
  readonly held?: Pick<BudgetLease, "take" | "give">;
  /** Aborted: nothing more is read. */
  readonly signal?: AbortSignal;
  /** A line that has begun and comes more slowly ends the stream as `too_slow`. Between two lines a sender may take its time. */
  readonly bytesPerSecond?: number;
}

/**
 * The non-blank lines of a stream. A line longer than `limit` bytes becomes `too_large`, a line without room
 * `no_room`; a broken stream ends with a line that says why. Never throws.
 */
export async function* lines(
  stream: ReadableStream<Uint8Array>,
  limit: number,
  { held, signal, bytesPerSecond = 0 }: LineBounds = {},
): AsyncGenerator<Line> {
  const gathered = new ChunkBuffer();
  let fault: BodyFault | null = null;
  let number = 1;
  let passed = 0;
  let isSlow = false;
  const source = stream.getReader();
  const rate = rateOf(bytesPerSecond, () => {
    isSlow = gathered.size > 0;
    if (isSlow) void source.cancel().catch(() => {});
  });
  const add = (bytes: Uint8Array): void => {
    if (fault !== null || bytes.length === 0) return;
    if (gathered.size + bytes.length > limit) fault = "too_large";
    else if (held?.take(bytes.length) === false) fault = "no_room";
    else {
      gathered.add(bytes);
      return;
    }
    held?.give(gathered.size);
    gathered.clear();
  };
  const take = (): Line | null => {
    const bytes: Line["bytes"] = fault === null ? ok(gathered.take()) : err(fault);
    const line = { number: number++, bytes };
    fault = null;
    if (!bytes.ok || !bytes.value.every((byte) => BLANK.has(byte))) return line;
    held?.give(bytes.value.length);
    return null;
  };
  try {
    for (let read = await source.read(); !read.done; read = await source.read()) {
      const chunk = read.value;
      rate.came(chunk.length);
      let from = 0;
      for (let to = chunk.indexOf(NEWLINE); to >= 0; to = chunk.indexOf(NEWLINE, from)) {
        add(chunk.subarray(from, to));
        from = to + 1;
        const line = take();
        if (line !== null) yield line;
        // looked for one by one, a million of them would take a second
        for (let end = blankTo(chunk, from); end > from; end = blankTo(chunk, from)) {
          from = end;
          number++;
        }
      }
      add(chunk.subarray(from));
      passed += chunk.length;
      if (passed < TURN_BYTES) continue;
      passed = 0;
      await yieldToEventLoop();
      if (signal?.aborted === true) return;
    }
    if (isSlow) fault = "too_slow";
    const last = take();
    if (last !== null) yield last;
  } catch (error) {
    yield { number, bytes: err(faultIn(error)) };
  } finally {
    rate.stop();
    held?.give(gathered.size);
    gathered.clear();
    void source.cancel().catch(() => {});
  }
}

/** The number of lines that are decided at the same time; their answers keep the order of the lines. */
const WINDOW = 16;
/** The number of lines with a problem after which a batch ends, since its sender uses another format. */
const MAX_BAD_LINES = 1000;
const NDJSON_TYPE = "application/x-ndjson";

/** POST /v1/batch: a decision a line. Reads and answers as a stream, in constant memory. */
export function postBatch(exchange: Exchange): Result<Reply, Problem> {
  const query = queryOf(exchange, []);
  if (!query.ok) return query;
  const stream = ndjsonStream(exchange);
  if (!stream.ok) return stream;
  const gone = new AbortController();
  exchange.signal.addEventListener("abort", () => gone.abort(), { once: true });
  const { held } = exchange;
  const { limit, bytesPerSecond } = boundsOf(exchange);
  const { signal } = gone;
  const answers = ordered({ ...exchange, signal }, lines(stream.value, limit, { held, signal, bytesPerSecond }));
  const { promise: done, resolve } = Promise.withResolvers<void>();
  return ok({ status: 200, type: NDJSON_TYPE, body: streamed(answers, gone, resolve), done });
}

/** The number of bytes of unread answers at which no further line is read. */
const AHEAD_BYTES = 1024 * 1024;

function streamed(
  answers: AsyncGenerator<Uint8Array>,
  gone: AbortController,
  onEnd: () => void,
): ReadableStream<Uint8Array> {
  const source = {
    async pull(controller: ReadableStreamDefaultController<Uint8Array>) {
      const next = await answers.next();
      if (next.done !== true) return controller.enqueue(next.value);
      controller.close();
      onEnd();
    },
    cancel() {
      gone.abort();
      onEnd();
      void answers.return(undefined);
    },
  };
  return new ReadableStream(source, new ByteLengthQueuingStrategy({ highWaterMark: AHEAD_BYTES }));
}

/** Yields each answer as soon as it and those before it are ready, while the next line is still arriving. */
async function* ordered(exchange: Exchange, source: AsyncGenerator<Line>): AsyncGenerator<Uint8Array> {
  const underWay: Promise<LineAnswer>[] = [];
  let reading: Promise<IteratorResult<Line>> | null = source.next();
  let answered = 0;
  let bad = 0;
  let last = 0;
  try {
    while (!exchange.signal.aborted && (reading !== null || underWay.length > 0)) {
      const [first] = underWay;
      const contenders: Promise<{ answered: LineAnswer } | { read: IteratorResult<Line> }>[] = [];
      if (first !== undefined) contenders.push(first.then((answered) => ({ answered })));
      if (reading !== null && underWay.length < WINDOW) contenders.push(reading.then((read) => ({ read })));
      const next = await Promise.race(contenders);
      if ("answered" in next) {
        underWay.shift();
        yield* next.answered.parts;
        // lines that are answered at once would otherwise never let other requests run
        if (++answered % WINDOW === 0) await yieldToEventLoop();
        if (next.answered.isProblem && ++bad === MAX_BAD_LINES) reading = null;
      } else if (next.read.done === true) reading = null;
      else {
        last = next.read.value.number;
        underWay.push(answer(exchange, next.read.value));
        reading = source.next();
      }
    }
    if (bad >= MAX_BAD_LINES) yield* lineParts(last + 1, tooManyBadLines(last));
  } finally {
    void source.return(undefined);
    await Promise.all(underWay);
  }
}

interface LineAnswer {
  /** The bytes of a line, in pieces. */
  readonly parts: readonly Uint8Array[];
  readonly isProblem: boolean;
}
/** The defaults for a line's members. */
const BARE = { kind: null, key: undefined, record: true } as const;
/** Never throws: a line's fault is its answer. */
async function answer(exchange: Exchange, { number, bytes }: Line): Promise<LineAnswer> {
  const { deps, caller, requestId, signal, held } = exchange;
  // another thread takes the bytes
  const size = bytes.ok ? bytes.value.length : 0;
  let outcome: Result<Uint8Array, Problem>;
  try {
    outcome = bytes.ok
      ? await decide({ ...BARE, deps, caller, requestId, bytes: bytes.value, signal })
      : bodyProblem(bytes.error, deps.limits.bodyBytes);
  } catch (error) {
    deps.log.error({ requestId, line: number, ...errorFields(error) }, "internal fault");
    outcome = problem("internal", `an internal fault; the log has it under requestId \`${requestId}\``);
  }
  held.give(size);
  return { parts: lineParts(number, outcome), isProblem: !outcome.ok };
}

const encoder = new TextEncoder();
const LINE_END = encoder.encode("\n");

function lineParts(number: number, outcome: Result<Uint8Array, Problem>): readonly Uint8Array[] {
  if (!outcome.ok) return [encoder.encode(`{"line":${number},"problem":${lineProblemText(outcome.error)}}\n`)];
  // the answer is sent as it is, but for its first bracket
  return [encoder.encode(`{"line":${number},`), outcome.value.subarray(1), LINE_END];
}

const tooManyBadLines = (last: number): Result<never, Problem> =>
  problem(
    "too_many_bad_lines",
    `${MAX_BAD_LINES} lines could not be answered, so the batch ends here: nothing after line ${last} was decided`,
  );
