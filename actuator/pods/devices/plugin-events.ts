import type { HealthFlip, PluginState } from "../../deviceplugin/plugins.ts";
import { type DeviceEvent, MOST_NAMED } from "./history-entry.ts";

/** Resource -> its plugin at the last look. */
export type PluginsSeen = ReadonlyMap<string, PluginState>;

/** What became of the plugins since the last look, by resource; all flips of one together. */
export function pluginEvents(before: PluginsSeen, states: readonly PluginState[]): readonly DeviceEvent[] {
  return states.flatMap((now) => {
    const was = before.get(now.resource);
    return was === now ? [] : [...comings(was, now), ...flips(was, now), ...goings(was, now)];
  });
}

function comings(was: PluginState | undefined, { resource, generation, endpoint, listed, devices }: PluginState) {
  if (was?.generation === generation) return [];
  return [
    { kind: "registered", resource, endpoint, ...(listed ? { count: devices.length } : {}) } satisfies DeviceEvent,
  ];
}

function goings(was: PluginState | undefined, now: PluginState): readonly DeviceEvent[] {
  const { resource, endpoint, state, generation } = now;
  const before = was?.generation === generation ? was.state : "registered";
  const ended = { kind: "ended", resource, endpoint } as const;
  const removed = { kind: "removed", resource } as const;
  if (before === state || state === "registered") return [];
  if (state === "stopped") return [ended];
  return before === "registered" ? [ended, removed] : [removed];
}

/** What a plugin lists first is no change. */
function flips(was: PluginState | undefined, now: PluginState): readonly DeviceEvent[] {
  if (was === undefined || was.history === now.history) return [];
  const isFirst = was.devices.length === 0 && !was.listed;
  const fresh = since(was.history, now.history).filter(({ from }) => !(isFirst && from === null));
  const unlisted = fresh.filter(({ from, to }) => from === null || to === null).length;
  const count = Math.max(now.flips - was.flips + unlisted, fresh.length);
  if (count === 0) return [];
  const named = fresh.slice(-MOST_NAMED).map(({ id, from, to }) => ({ id, from, to }));
  return [{ kind: "flips", resource: now.resource, count, flips: named }];
}

/** Those that came after the last one of before; all, where that one was pushed out. */
function since(before: readonly HealthFlip[], now: readonly HealthFlip[]): readonly HealthFlip[] {
  const last = before.at(-1);
  return last === undefined ? now : now.slice(now.lastIndexOf(last) + 1);
}
