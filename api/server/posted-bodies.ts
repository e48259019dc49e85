import { Lru } from "../base/cache.ts";
import { LIMITS } from "../base/limits.ts";
import { fieldsOf } from "../base/own.ts";
import type { Kind } from "../model/decision.ts";
import { crossFieldIssues } from "../model/decode.ts";
import type { Pod } from "../model/pod.ts";
import { isPodList, podItems } from "../model/snapshot.ts";
import { decisionRequest } from "../service/decision-request.ts";
import { parseJson } from "../service/json.ts";
import { frozenConfiguration } from "../service/node-turn/node-state.ts";
import { askOf, type PostedTurn } from "../service/node-turn/request.ts";
import { decodeShared } from "../service/node-turn/shared-parts.ts";
import { INLINE_BELOW } from "./threads.ts";

/** The place of a value's text, from and to (exclusive), in bytes. */
interface Span {
  readonly from: number;
  readonly to: number;
}
interface PostedPod extends Span {
  readonly pod: Pod;
}
/** A node's last body. */
interface PostedBody {
  readonly bytes: Buffer;
  readonly pods: readonly PostedPod[];
}

/** The node's name is searched in this many bytes from the beginning. */
const HEAD = 64 * 1024;
const NODE_NAME = '"nodeName"';
const NAME = /^"nodeName"\s*:\s*"([^"\\]{1,253})"/;
const MAX_BODIES = 4096;
const MAX_BYTES = 32 * 1024 * 1024;
/** The most bytes that are parsed on the event loop, for some ten milliseconds; threads take larger bodies. */
const MAX_PARSED = 1024 * 1024;
/** Each pod whose text is not found takes a search through the whole body. */
const MAX_MISSED = 16;

/**
 * Decodes whole snapshots of nodes that are posted again and again: a pod whose text is in the node's last body is the same object, and
 * is neither parsed, checked nor decided again. A number stands for each such text while the rest is parsed.
 */
export class PostedBodies {
  readonly #last = new Lru<string, PostedBody>(MAX_BODIES, MAX_BYTES);

  /**
   * A body of `POST /v1/decisions/KIND` as a turn of its node. Null for a node's first body, as most nodes are posted once, and for a body
   * with a fault or without pods.
   */
  read(body: Uint8Array, kind: Kind): PostedTurn | null {
    const bytes = Buffer.from(body.buffer, body.byteOffset, body.length);
    // smaller bodies are decoded as fast as they are compared
    const name = bytes.length < INLINE_BELOW ? null : nodeNameIn(bytes);
    if (name === null) return null;
    const last = this.#last.get(name);
    if (last === undefined) this.#last.set(name, { bytes: Buffer.alloc(0), pods: [] });
    const read = last && readAfter(last, bytes, kind);
    if (!read) return null;
    this.#last.set(name, read.body, bytes.length);
    return read.turn;
  }
}

function nodeNameIn(bytes: Buffer): string | null {
  const at = bytes.subarray(0, HEAD).indexOf(NODE_NAME);
  return at < 0 ? null : (NAME.exec(bytes.toString("latin1", at, at + 300))?.[1] ?? null);
}

function readAfter(
  last: PostedBody,
  bytes: Buffer,
  kind: Kind,
): { readonly turn: PostedTurn; readonly body: PostedBody } | null {
  const known = knownIn(bytes, last);
  const rest = withNumbers(bytes, known);
  if (rest.length > MAX_PARSED) return null;
  const parsed = parseJson(rest);
  const request = parsed.ok ? decisionRequest(parsed.value, kind) : parsed;
  if (!request.ok || request.value.snapshotId !== null) return null;
  const posted = fieldsOf(request.value.snapshot);
  const { pods: list } = posted;
  const entries = podItems(list);
  const spans = podSpans(rest);
  if (!Array.isArray(entries) || spans?.length !== entries.length || entries.length > LIMITS.pods) return null;
  const others = entries.filter((entry) => typeof entry !== "number");
  const snapshot = { ...posted, pods: isPodList(list) ? { ...list, items: others } : others };
  const decoded = decodeShared(snapshot, "snapshot");
  const node = decoded.ok ? decoded.value.node?.metadata.name : undefined;
  if (!decoded.ok || node === undefined || decoded.value.pods?.length !== others.length) return null;
  const fresh = decoded.value.pods.values();
  const pods: PostedPod[] = [];
  let [numbers, shift] = [0, 0];
  for (const [i, entry] of entries.entries()) {
    const { from, to } = spans[i] as Span;
    if (typeof entry === "number") {
      const pod = known[numbers];
      // a number of the body's own, or a text that is not an entry
      if (pod === undefined || entry !== numbers++) return null;
      pods.push(pod);
      shift = pod.to - to - 1;
    } else pods.push({ pod: fresh.next().value as Pod, from: from + shift, to: to + shift });
  }
  if (numbers !== known.length) return null;
  const whole = { ...decoded.value, pods: pods.map(({ pod }) => pod) };
  if (crossFieldIssues(whole, "", "").length > 0) return null;
  const configuration = frozenConfiguration(posted["kubeletConfiguration"]);
  const turn = {
    node,
    request: {
      from: { input: { snapshot: whole, configuration } },
      asks: [askOf({ ...request.value, snapshot: null })],
    },
  };
  return { turn, body: { bytes, pods } };
}

/** The pods of the last body whose texts are in this one, in the same order, with their places here. */
function knownIn(bytes: Buffer, last: PostedBody): readonly PostedPod[] {
  const known: PostedPod[] = [];
  let [end, lastEnd, missed] = [0, 0, 0];
  for (const { pod, from, to } of last.pods) {
    const text = last.bytes.subarray(from, to);
    const expected = end + from - lastEnd;
    const isThere = bytes.subarray(expected, expected + text.length).equals(text);
    const at = isThere ? expected : missed > MAX_MISSED ? -1 : bytes.indexOf(text, end);
    if (at < 0) missed++;
    else {
      end = at + text.length;
      known.push({ pod, from: at, to: end });
      lastEnd = to;
    }
  }
  return known;
}

/** The body with ` N ` in place of the N-th of the texts. */
function withNumbers(bytes: Buffer, known: readonly Span[]): Buffer {
  const pieces: Buffer[] = [];
  let end = 0;
  for (const [i, { from, to }] of known.entries()) {
    pieces.push(bytes.subarray(end, from), Buffer.from(` ${i} `));
    end = to;
  }
  return Buffer.concat([...pieces, bytes.subarray(end)]);
}

/** The places of the entries of `snapshot.pods`, or of its `items`, in JSON text; null if there are none. */
function podSpans(text: Buffer): readonly Span[] | null {
  const snapshot = memberAt(text, afterSpace(text, 0), "snapshot");
  const pods = snapshot < 0 ? -1 : memberAt(text, snapshot, "pods");
  if (pods < 0) return null;
  const list = text[pods] === OPEN_LIST ? pods : memberAt(text, pods, "items");
  return list < 0 || text[list] !== OPEN_LIST ? null : entriesAt(text, list);
}

const [QUOTE, BACKSLASH, COMMA, COLON] = [0x22, 0x5c, 0x2c, 0x3a];
const [OPEN, CLOSE, OPEN_LIST, CLOSE_LIST] = [0x7b, 0x7d, 0x5b, 0x5d];

/** The position of the value of an object's member, of the last one with this name; -1 if there is none. */
function memberAt(text: Buffer, object: number, name: string): number {
  if (text[object] !== OPEN) return -1;
  let found = -1;
  for (let at = afterSpace(text, object + 1); text[at] === QUOTE; ) {
    const end = valueEnd(text, at);
    const value = afterSpace(text, afterSpace(text, end) + 1);
    if (text.toString("latin1", at + 1, end - 1) === name) found = value;
    at = afterSpace(text, valueEnd(text, value));
    if (text[at] === COMMA) at = afterSpace(text, at + 1);
  }
  return found;
}

function entriesAt(text: Buffer, list: number): readonly Span[] {
  const entries: Span[] = [];
  for (let at = afterSpace(text, list + 1); at < text.length && text[at] !== CLOSE_LIST; ) {
    const to = valueEnd(text, at);
    entries.push({ from: at, to });
    at = afterSpace(text, to);
    if (text[at] === COMMA) at = afterSpace(text, at + 1);
  }
  return entries;
}

function afterSpace(text: Buffer, from: number): number {
  let at = from;
  while (at < text.length && (text[at] as number) <= 0x20) at++;
  return at;
}

/** Where the value that begins at `from` ends. */
function valueEnd(text: Buffer, from: number): number {
  let depth = 0;
  for (let at = from; at < text.length; at++) {
    const c = text[at];
    if (c === QUOTE) {
      for (at++; at < text.length && text[at] !== QUOTE; at++) if (text[at] === BACKSLASH) at++;
      if (depth === 0) return at + 1;
    } else if (c === OPEN || c === OPEN_LIST) depth++;
    else if (c === CLOSE || c === CLOSE_LIST) {
      // the end of the object or list around a number or a word
      if (depth === 0) return at;
      if (--depth === 0) return at + 1;
    } else if (depth === 0 && (c === COMMA || c === COLON || (c as number) <= 0x20)) return at;
  }
  return text.length;
}
