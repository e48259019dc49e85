import { describe, expect, test } from "vitest";
import type { PluginFault } from "../../../../actuator/deviceplugin/fault.ts";
import type { PluginState } from "../../../../actuator/deviceplugin/plugins.ts";
import { PluginFaults } from "../../../../actuator/pods/devices/plugin-faults.ts";

const GPU = "example.com/gpu";
const refused = (more: Partial<PluginFault> = {}): PluginFault => ({
  resource: GPU,
  endpoint: "gpu.sock",
  call: "Register",
  code: "REFUSED",
  message: "no",
  ...more,
});
const LOST = refused({ resource: "", endpoint: "/d/kubelet.sock", code: "SOCKET_LOST", message: "gone", stands: true });

function withFaults() {
  const now = { ms: 0 };
  const host = { states: (): PluginState[] => [], standing: (): PluginFault[] => [] };
  const messages: string[] = [];
  const faults = new PluginFaults({ monotonicMs: () => now.ms }, host, ({ message }) => messages.push(message));
  return { now, host, faults, messages };
}

describe("faults of plugins", () => {
  test("that describe a state are reported exactly as long as the state lasts", () => {
    const { now, host, faults, messages } = withFaults();
    host.standing = () => [LOST];
    faults.add(LOST);
    now.ms = 3_600_000;
    expect(faults.standing()).toEqual(["Register at /d/kubelet.sock: SOCKET_LOST: gone"]);
    host.standing = () => [];
    expect(faults.standing()).toEqual([]);
    expect(messages).toEqual(["gone"]);
  });
  test("of one resource and call stand side by side, and equal ones are reported once", () => {
    const { now, faults, messages: reported } = withFaults();
    const messages = Array.from({ length: 13 }, (_, i) => `no ${i}`);
    for (const message of [...messages, ...messages]) faults.add(refused({ message }));
    expect(faults.standing()).toEqual(
      messages.map((message) => `Register of \`${GPU}\` at gpu.sock: REFUSED: ${message}`),
    );
    expect(reported).toEqual(messages);
    now.ms = 300_001;
    expect(faults.standing()).toEqual([]);
  });
  test("from one noisy plugin push out its own older faults, not another plugin's", () => {
    const { faults } = withFaults();
    faults.add(refused({ resource: "example.com/calm" }));
    for (let i = 0; i < 100; i++) faults.add(refused({ message: `no ${i}` }));
    expect(faults.standing()).toHaveLength(17);
    expect(faults.standing()[0]).toContain("example.com/calm");
    expect(faults.standing().at(-1)).toContain("no 99");
  });
  test("are bounded in number, however many resources have one", () => {
    const { faults } = withFaults();
    for (let i = 0; i < 200; i++) faults.add(refused({ message: `no ${i}`, resource: `example.com/r${i}` }));
    expect(faults.standing()).toHaveLength(64);
  });
  test("are merged into one line when many plugins stop at once", () => {
    const { faults } = withFaults();
    const stop = (i: number) => {
      const endpoint = `/dp/${i}.sock`;
      const message = `Call cancelled at ${endpoint}`;
      faults.add(refused({ resource: `example.com/${i}`, endpoint, call: "ListAndWatch", code: "CANCELLED", message }));
    };
    for (let i = 0; i < 3; i++) stop(i);
    expect(faults.standing()).toHaveLength(3);
    for (let i = 3; i < 20; i++) stop(i);
    expect(faults.standing()).toEqual([
      expect.stringMatching(/^ListAndWatch of 20 resources \(example\.com\/0, .*, \.\.\.\): CANCELLED: Call cancelled/),
    ]);
  });
});
