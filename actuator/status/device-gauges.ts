import type { DeviceRow } from "./node-status.ts";
import { Counter, Gauge, type Registry } from "./prom-parts.ts";

/** Resources with series of their own; those whose plugins are there come first. */
const MOST_RESOURCES = 256;

/** What a NodeStatus tells of devices. INVARIANT: the number of series is bounded, whatever registers. */
export function deviceGauges(registry: Registry): (rows: readonly DeviceRow[]) => void {
  const registers = [registry];
  const labelNames = ["resource"] as const;
  const gauge = (name: string, help: string) => new Gauge({ name, help, labelNames, registers });
  const capacity = gauge("nodewise_device_capacity", "Devices that a plugin lists");
  const allocatable = gauge("nodewise_device_allocatable", "Those of them that are healthy");
  const allocated = gauge("nodewise_device_allocated", "Devices that containers hold");
  const pending = gauge("nodewise_device_pending", "Containers with devices and without their plugin's answer");
  const up = gauge("nodewise_device_plugin_up", "1: the resource's plugin is registered");
  const help = "Changes of devices' health";
  const flips = new Counter({ name: "nodewise_device_health_flips_total", help, labelNames, registers });
  const omitted = new Gauge({
    name: "nodewise_device_resources_without_series",
    help: "Resources beyond the limit",
    registers,
  });
  return (rows) => {
    for (const one of [capacity, allocatable, allocated, pending, up, flips]) one.reset();
    const shown = [...rows.filter(isUp), ...rows.filter((row) => !isUp(row))].slice(0, MOST_RESOURCES);
    omitted.set(rows.length - shown.length);
    for (const row of shown) {
      const labels = { resource: row.resource };
      capacity.set(labels, row.capacity);
      allocatable.set(labels, row.allocatable);
      allocated.set(labels, row.allocated);
      pending.set(labels, row.pending);
      up.set(labels, Number(isUp(row)));
      flips.inc(labels, row.flips);
    }
  };
}
const isUp = ({ plugin }: DeviceRow): boolean => plugin === "registered";
