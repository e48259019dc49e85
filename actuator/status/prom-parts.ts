import { createRequire } from "node:module";
import type * as client from "prom-client";

const require = createRequire(import.meta.url);

// The parts of prom-client that count and render: the whole also loads clients for HTTPS and clusters, some MB of a small
// daemon.
export const Counter = require("prom-client/lib/counter.js") as typeof client.Counter;
export const Gauge = require("prom-client/lib/gauge.js") as typeof client.Gauge;
export const Histogram = require("prom-client/lib/histogram.js") as typeof client.Histogram;
export const Registry = require("prom-client/lib/registry.js") as typeof client.Registry;
export type Gauge<T extends string = string> = client.Gauge<T>;
export type Registry = client.Registry;
