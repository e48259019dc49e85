import { type PluginEvent, type Plugins, stateAfter } from "../../../actuator/deviceplugin/plugins.ts";

export const NO_PLUGINS: Plugins = new Map();

/** The plugins after an event; the same object if the event changes nothing. */
export function afterEvent(plugins: Plugins, event: PluginEvent): Plugins {
  const before = plugins.get(event.resource);
  const after = stateAfter(before, event);
  if (after === before) return plugins;
  if (after !== undefined) return new Map(plugins).set(event.resource, after);
  return new Map([...plugins].filter(([resource]) => resource !== event.resource));
}
