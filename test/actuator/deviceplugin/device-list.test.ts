import { describe, expect, test } from "vitest";
import { type DeviceList, entryOf, listOf } from "../../../actuator/deviceplugin/device-list.ts";
import { DeviceListReader } from "../../../actuator/deviceplugin/device-list-reader.ts";
import { serviceOf } from "../../../actuator/deviceplugin/plugin-client.ts";
import { LIMITS } from "../../../api/base/limits.ts";

const GPU = "example.com/gpu";
const bytesOf = (devices: readonly object[]): Buffer =>
  serviceOf("v1beta1.DevicePlugin")["ListAndWatch"]?.responseSerialize({ devices }) ?? Buffer.alloc(0);
const device = (ID: string, health = "Healthy", nodes: readonly number[] | null = null) => ({
  ID,
  health,
  topology: nodes === null ? null : { nodes: nodes.map((node) => ({ ID: node })) },
});
const deviceListOf = (resource: string, listed: readonly ReturnType<typeof device>[]): DeviceList =>
  listOf(listed.map((one) => entryOf(resource, one)));
const readDeviceList = (resource: string, bytes: Buffer, most?: number) =>
  new DeviceListReader(resource).read(bytes, most === undefined ? undefined : () => most);

describe("a list of devices", () => {
  test("may have 4,096 devices, and up to the node's limit", () => {
    for (const count of [0, 1, 4096, LIMITS.devices]) {
      const list = readDeviceList(GPU, bytesOf(Array.from({ length: count }, (_, i) => device(`gpu-${i}`))));
      expect(list.ok && list.value.devices.length).toBe(count);
    }
  });
  test("may have the node's limit of devices with ids of 63 characters, and longer lists count for more", () => {
    const padded = (count: number, length: number) =>
      bytesOf(Array.from({ length: count }, (_, i) => device(`${i}`.padStart(length, "d"), "Healthy", [0])));
    const usual = readDeviceList(GPU, padded(LIMITS.devices, 63));
    expect(usual.ok && usual.value.size).toBe(LIMITS.devices);
    const long = readDeviceList(GPU, padded(100, 4_000));
    expect(long.ok && long.value.size).toBe(Math.ceil((100 * 4_005) / 80));
    expect(readDeviceList(GPU, padded(100, 4_000), 5_000)).toEqual({
      ok: false,
      error: expect.stringContaining("count as 5007, and there is room for 5000"),
    });
    // `<` takes six bytes in the stored form
    const escaped = readDeviceList(GPU, bytesOf([device("<".repeat(1_000))]));
    expect(escaped.ok && escaped.value.size).toBe(Math.ceil(6_003 / 80));
  });
  test("is refused for growing in bytes as for growing in number", () => {
    const reader = new DeviceListReader(GPU);
    const first = reader.read(bytesOf([device("a"), device("b")]), () => 2);
    expect(first.ok && first.value.size).toBe(2);
    expect(reader.read(bytesOf([device("a"), device("b".repeat(4_000))]), () => 2).ok).toBe(false);
    expect(reader.read(bytesOf([device("a"), device("b", "Unhealthy")]), () => 2).ok).toBe(true);
  });
  test("of a million devices is refused before it is decoded", () => {
    // the bytes that cannot be decoded are at the end
    const bytes = Buffer.concat([Buffer.alloc(2_000_000, Buffer.from([0x0a, 0])), Buffer.from([0x0b])]);
    const list = readDeviceList(GPU, bytes);
    expect(list).toEqual({ ok: false, error: expect.stringContaining("more than 20000 devices") });
  });
  test("may have unknown fields of every kind, which are skipped", () => {
    const unknown = Buffer.from([0x10, 0xff, 0x01, 0x19, 1, 2, 3, 4, 5, 6, 7, 8, 0x22, 2, 9, 9, 0x2d, 1, 2, 3, 4]);
    const list = readDeviceList(GPU, Buffer.concat([unknown, bytesOf([device("a")]), unknown]));
    expect(list).toMatchObject({ ok: true, value: { devices: [{ id: "a" }], remarks: [] } });
  });
  test("cut at any byte is an error", () => {
    const whole = bytesOf([device("gpu-0", "Healthy", [0, 1])]);
    for (let end = 1; end < whole.length; end++)
      expect(readDeviceList(GPU, whole.subarray(0, end)).ok, `${end}`).toBe(false);
    const wrong = [[0x0a, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff], [0x0b]];
    for (const bytes of wrong) expect(readDeviceList(GPU, Buffer.from(bytes)).ok, `${bytes}`).toBe(false);
  });
  test("of random bytes is decoded or an error", () => {
    let seed = 7;
    const next = (below: number): number => {
      seed = (seed * 48271) % 2147483647;
      return seed % below;
    };
    const seen = { ok: 0, faults: 0 };
    for (let i = 0; i < 20_000; i++) {
      const bytes = bytesOf([device("a", "Healthy", [next(3)]), device("b")]);
      for (let k = next(3); k >= 0; k--) bytes[next(bytes.length)] = next(256);
      const list = readDeviceList(GPU, bytes);
      seen[list.ok ? "ok" : "faults"]++;
    }
    expect(seen.ok).toBeGreaterThan(1000);
    expect(seen.faults).toBeGreaterThan(1000);
  });
});

describe("the device ids of a list", () => {
  test("are left out with a remark when empty, too long or not UTF-8", () => {
    const { devices, remarks } = deviceListOf(GPU, [
      device(""),
      device("x".repeat(4097)),
      device("a\ufffd"),
      device("ok"),
    ]);
    expect(devices.map(({ id }) => id)).toEqual(["ok"]);
    expect(remarks).toEqual([
      "device 0 is left out: its id is empty",
      "device 1 is left out: its id has more than 4096 characters",
      "device 2 is left out: its id is not UTF-8",
    ]);
  });
  test("listed twice are one device with the last topology, healthy only if all are", () => {
    const { devices, remarks } = deviceListOf(GPU, [
      device("a", "Healthy", [0]),
      device("a", "bad"),
      device("a", "Healthy", [1]),
    ]);
    expect(devices).toEqual([{ resource: GPU, id: "a", health: "Unhealthy", numaNodes: [1] }]);
    expect(remarks[0]).toBe('device "a" is listed twice: it counts once');
  });
  test("that are invalid by the thousand cause few messages", () => {
    expect(
      deviceListOf(
        GPU,
        Array.from({ length: 1000 }, () => device("")),
      ).remarks,
    ).toHaveLength(8);
  });
  test("keep valid NUMA nodes only, with a remark, and -1 means none", () => {
    const { devices, remarks } = deviceListOf(GPU, [device("a", "Healthy", [-1]), device("b", "Healthy", [3, 1, 3])]);
    expect(devices).toEqual([
      { resource: GPU, id: "a", health: "Healthy" },
      { resource: GPU, id: "b", health: "Healthy", numaNodes: [1, 3] },
    ]);
    expect(remarks).toEqual(['device "a" names NUMA nodes that cannot be: they are left out']);
  });
  test("with an empty topology differ from those without one", () => {
    const list = readDeviceList(GPU, bytesOf([device("nowhere", "Healthy", []), device("unsaid")]));
    expect(list.ok && list.value).toEqual({
      devices: [
        { resource: GPU, id: "nowhere", health: "Healthy", numaNodes: [] },
        { resource: GPU, id: "unsaid", health: "Healthy" },
      ],
      remarks: [],
      size: 2,
    });
  });
});

describe("a list after a former list", () => {
  const reader = new DeviceListReader(GPU);
  const read = (...listed: readonly object[]) => {
    const list = reader.read(bytesOf(listed));
    if (!list.ok) throw new Error(list.error);
    return list.value;
  };
  test("reuses the objects of unchanged devices, also at other places", () => {
    const many = Array.from({ length: 100 }, (_, i) => device(`many-${i}`));
    const before = read(...many).devices;
    expect(read(...many.toReversed()).devices.every((one, i) => one === before[99 - i])).toBe(true);
    const after = read(...many.toReversed().with(7, device("another"))).devices;
    expect(after.filter((one) => before.includes(one))).toHaveLength(99);
    expect(after[7]).toEqual({ resource: GPU, id: "another", health: "Healthy" });
  });
  test("has new objects for changed devices", () => {
    const [a, b, c] = read(device("a"), device("b", "Healthy", [1]), device("c")).devices;
    const next = read(device("a", "ill"), device("b", "Healthy", [0]), device("c"), device("d")).devices;
    expect(next).toEqual([
      { resource: GPU, id: "a", health: "Unhealthy" },
      { resource: GPU, id: "b", health: "Healthy", numaNodes: [0] },
      { resource: GPU, id: "c", health: "Healthy" },
      { resource: GPU, id: "d", health: "Healthy" },
    ]);
    expect(next[2]).toBe(c);
    expect([a, b]).toEqual([
      { resource: GPU, id: "a", health: "Healthy" },
      { resource: GPU, id: "b", health: "Healthy", numaNodes: [1] },
    ]);
  });
  test("reuses the objects also when an entry grew and the bytes moved", () => {
    const many = Array.from({ length: 100 }, (_, i) => device(`long-${i}-${"x".repeat(i)}`, "Healthy", [i % 2]));
    const before = read(...many).devices;
    const ill = bytesOf(
      many.with(40, device("long-40-x", "Unhealthy")).with(41, device(many[41]?.ID as string, "ill")),
    );
    const after = reader.read(ill, () => {
      throw new Error("asked");
    });
    if (!after.ok) throw new Error(after.error);
    expect(after.value.devices.flatMap((one, i) => (one === before[i] ? [] : [[i, one.id, one.health]]))).toEqual([
      [40, "long-40-x", "Unhealthy"],
      [41, many[41]?.ID, "Unhealthy"],
    ]);
    // an unknown field does not remove any device
    const more = reader.read(Buffer.concat([ill, Buffer.from([0x10, 1])]), () => 100);
    expect(more).toMatchObject({ ok: true, value: { devices: after.value.devices } });
    expect(reader.read(bytesOf([...many, device("one-more")]), () => 100)).toMatchObject({ ok: false });
    expect(read(...many.toSpliced(0, 1)).devices).toEqual(before.slice(1));
  });
  test("is decoded the same as if it were the first", () => {
    let seed = 11;
    const next = (below: number): number => {
      seed = (seed * 48271) % 2147483647;
      return seed % below;
    };
    const one = () => device(["a", "b", "c", "d", "", `e-${next(40)}`][next(6)] as string, ["Healthy", "ill"][next(2)]);
    let listed = [device("a")];
    for (let i = 0; i < 3_000; i++) {
      if (next(4) === 0) listed = listed.toReversed();
      if (next(3) === 0) listed = listed.slice(next(2), 60);
      if (next(3) === 0) listed = [...listed, { ...one(), topology: { nodes: [{ ID: next(4) - 1 }] } }];
      else listed = listed.with(next(listed.length + 1) % Math.max(listed.length, 1), one());
      expect(read(...listed)).toEqual(deviceListOf(GPU, listed));
    }
  });
  test("repeats the remarks about faults that remain, duplicates too", () => {
    const listed = [device(""), device("a", "ill"), device("a"), device("b", "Healthy", [-1])];
    const first = read(...listed);
    expect(first.remarks).toHaveLength(3);
    expect(first.devices[0]?.health).toBe("Unhealthy");
    expect(read(...listed)).toEqual(first);
    expect(read(device("a")).devices[0]?.health).toBe("Healthy");
  });
  test("is not affected by an invalid list before it", () => {
    expect(reader.read(Buffer.from([0x0a, 0x05, 0x0a]))).toMatchObject({ ok: false });
    // the first device's id extends into the second device
    const cut = [0x0a, 0x02, 0x0a, 0x7f, 0x0a, 0x03, 0x0a, 0x01, 0x7a];
    expect(reader.read(Buffer.from(cut))).toMatchObject({ ok: false });
    expect(read(device("z")).devices).toEqual([{ resource: GPU, id: "z", health: "Healthy" }]);
  });
});

describe("decoding the bytes of a device", () => {
  const readOne = (...bytes: readonly number[]) => {
    const list = readDeviceList(GPU, Buffer.from([0x0a, bytes.length, ...bytes]));
    return list.ok ? list.value.devices[0] : undefined;
  };
  const Z = [0x0a, 1, 0x7a] as const;
  const ONE = { resource: GPU, id: "z", health: "Unhealthy" };
  test("skips fields of another wire type, lets repeated fields replace and merges topologies", () => {
    expect(readOne(0x08, 5, ...Z, 0x15, 1, 2, 3, 4)).toEqual(ONE);
    expect(readOne(0x0a, 1, 0x79, ...Z)).toEqual(ONE);
    const topologies = [0x1a, 4, 0x0a, 2, 0x08, 3, 0x1a, 2, 0x0a, 0];
    expect(readOne(...Z, ...topologies)).toEqual({ ...ONE, numaNodes: [0, 3] });
  });
  test("fails when a length exceeds the message, at any depth", () => {
    expect(readOne(...Z, 0x1a, 4, 0x0a, 3, 0x08, 3)).toBeUndefined();
    expect(readOne(...Z, 0x1a, 3, 0x0a, 1, 0x08)).toBeUndefined();
    expect(readOne(...Z, 0x1a, 3, 0x0a, 2, 0x08, 3)).toBeUndefined();
    expect(readOne(0x02, 0)).toBeUndefined();
    const negative = [0x0a, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01];
    expect(readOne(...negative)).toBeUndefined();
  });
});
