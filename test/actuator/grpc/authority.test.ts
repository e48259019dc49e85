import { describe, expect, test } from "vitest";
import {
  authorityFixer,
  MAX_HELD_BYTES,
  type PassedFrames,
  withAuthority,
} from "../../../actuator/grpc/authority-fix-socket.ts";
import { frame, headers, PREFACE, plain, SETTINGS, type Style } from "./http2.ts";

const PATH = "/var/lib/kubelet/device-plugins/kubelet.sock";
const REGISTER = "/v1beta1.Registration/Register";
const STYLES: readonly Style[] = ["indexed name", "written name", "Huffman name", "never indexed"];
const block = headers(REGISTER, plain(PATH), "indexed name");
const mended = headers(REGISTER, plain("localhost"), "indexed name");
const bytesOf = (passed: PassedFrames): Buffer =>
  "bytes" in passed ? Buffer.concat(passed.bytes) : Buffer.from(passed.refused);

describe("withAuthority", () => {
  test.each(STYLES)("replaces a path in :authority (%s) by a valid one, and nothing else", (style) => {
    const changed = withAuthority(headers(REGISTER, plain(PATH), style));
    expect(changed).toEqual(headers(REGISTER, plain("localhost"), style));
  });
  test("replaces a Huffman-coded value without decoding it", () => {
    const huffman = Buffer.concat([Buffer.from([0x80 | 20]), Buffer.alloc(20, 0x62)]);
    expect(withAuthority(headers(REGISTER, huffman, "indexed name"))).toEqual(mended);
  });
  test("never makes the value longer, so that the header tables stay in step", () => {
    expect(withAuthority(headers(REGISTER, plain("/x"), "indexed name"))).toEqual(
      headers(REGISTER, plain("l"), "indexed name"),
    );
  });
  test("replaces a long value whose length takes several bytes", () => {
    const long = Buffer.concat([Buffer.from([127, 0x80 | (873 & 0x7f), 873 >> 7]), Buffer.alloc(1000, 0x2f)]);
    expect(withAuthority(headers(REGISTER, long, "indexed name"))).toEqual(mended);
  });
  test("does nothing without :authority, or with an indexed one", () => {
    expect(withAuthority(Buffer.from([0x83, 0x86, 0x84, 0x81]))).toBeUndefined();
    expect(withAuthority(Buffer.concat([Buffer.from([0x3f, 0xe1, 0x1f, 0xbe])]))).toBeUndefined();
    expect(withAuthority(Buffer.alloc(0))).toBeUndefined();
  });
  test("does not change a header block that is cut inside a field", () => {
    let whole = 0;
    for (let end = 0; end < block.length; end++) {
      const cut = withAuthority(block.subarray(0, end));
      if (cut !== undefined) whole++;
      else continue;
      expect(cut.indexOf(PATH)).toBe(-1);
    }
    // two cuts leave whole header fields: after this field, and after the next one
    expect(whole).toBe(2);
  });
  test("leaves header blocks with endless or oversized integers alone", () => {
    for (const bytes of [[0x7f, ...Array<number>(40).fill(0xff)], [0x41, 0x7f, 0xff, 0xff, 0xff, 0xff, 0x0f], [0xff]]) {
      expect(withAuthority(Buffer.from(bytes)), `${bytes}`).toBeUndefined();
    }
  });
});

describe("authorityFixer", () => {
  const whole = Buffer.concat([PREFACE, SETTINGS, frame(1, 4, 1, block), frame(0, 1, 1, Buffer.from("body"))]);
  const wanted = Buffer.concat([PREFACE, SETTINGS, frame(1, 4, 1, mended), frame(0, 1, 1, Buffer.from("body"))]);

  test("gives the same frames however the bytes are split", () => {
    expect(bytesOf(authorityFixer()(whole))).toEqual(wanted);
    const pass = authorityFixer();
    expect(Buffer.concat([...whole].map((byte) => bytesOf(pass(Buffer.from([byte])))))).toEqual(wanted);
    for (let cut = 1; cut < whole.length; cut++) {
      const parts = authorityFixer();
      expect(Buffer.concat([bytesOf(parts(whole.subarray(0, cut))), bytesOf(parts(whole.subarray(cut)))])).toEqual(
        wanted,
      );
    }
  });
  test("joins headers in several frames, with padding and priority, into one frame without padding", () => {
    const priority = Buffer.from([0, 0, 0, 0, 15]);
    const first = Buffer.concat([Buffer.from([3]), priority, block.subarray(0, 40), Buffer.alloc(3)]);
    const parts = [
      frame(1, 0x29, 5, first),
      frame(9, 0, 5, block.subarray(40, 50)),
      frame(9, 4, 5, block.subarray(50)),
    ];
    const passed = bytesOf(authorityFixer()(Buffer.concat([PREFACE, ...parts])));
    expect(passed.subarray(PREFACE.length)).toEqual(frame(1, 0x25, 5, Buffer.concat([priority, mended])));
  });
  test("passes on headers that need no change or cannot be decoded", () => {
    const empty = frame(1, 4, 1, Buffer.alloc(0));
    const padded = frame(1, 0x0c, 1, Buffer.from([200, 1, 2]));
    const interrupted = Buffer.concat([frame(1, 0, 1, block), SETTINGS, frame(9, 4, 1, block)]);
    for (const frames of [empty, padded, interrupted, frame(9, 4, 1, block)]) {
      const all = Buffer.concat([PREFACE, frames]);
      expect(bytesOf(authorityFixer()(all))).toEqual(all);
    }
  });
  test("passes on other frames at once, whatever their length", () => {
    const pass = authorityFixer();
    const head = frame(0, 0, 1, Buffer.alloc(0));
    head.writeUIntBE(0xffffff, 0, 3);
    bytesOf(pass(PREFACE));
    expect(bytesOf(pass(head))).toEqual(head);
    expect(bytesOf(pass(Buffer.alloc(1000)))).toHaveLength(1000);
  });
  test("refuses too large headers before it buffers them", () => {
    const refused = { refused: "its headers are too long" };
    const large = frame(1, 4, 1, Buffer.alloc(0));
    large.writeUIntBE(MAX_HELD_BYTES + 1, 0, 3);
    expect(authorityFixer()(Buffer.concat([PREFACE, large]))).toEqual(refused);
    const endless = Buffer.concat([
      PREFACE,
      frame(1, 0, 1, block),
      ...Array<Buffer>(40).fill(frame(9, 0, 1, Buffer.alloc(0))),
    ]);
    expect(authorityFixer()(endless)).toEqual(refused);
    const growing = [frame(1, 0, 1, block), ...Array<Buffer>(5).fill(frame(9, 0, 1, Buffer.alloc(4096)))];
    expect(authorityFixer()(Buffer.concat([PREFACE, ...growing]))).toEqual(refused);
  });
  test("refuses other protocols at the first differing byte", () => {
    expect(authorityFixer()(Buffer.from("GET / HTTP/1.1\r\n"))).toEqual({ refused: "it does not speak HTTP/2" });
    const pass = authorityFixer();
    expect("bytes" in pass(Buffer.from("PRI *"))).toBe(true);
    expect(pass(Buffer.from("!"))).toEqual({ refused: "it does not speak HTTP/2" });
  });
});
