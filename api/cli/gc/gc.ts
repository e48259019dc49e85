import type { GcKind } from "../../../actuator/gc/ports.ts";
import type { Cli } from "../cli.ts";
import { EXIT, fault, type Outcome } from "../exit.ts";
import { configOf, type GcGiven, isPreview } from "./given.ts";
import { worldOf } from "./world.ts";

const KIND: Readonly<Record<"images" | "containers", GcKind>> = { images: "image-gc", containers: "container-gc" };

/** `nodewise gc`: what would go, or one pass that makes it go. */
export async function gc(what: "images" | "containers", given: GcGiven, cli: Cli): Promise<Outcome> {
  if (given.seen !== undefined && (!isPreview(given) || what !== "images"))
    return fault(EXIT.badInput, "--seen: only assumed for `gc images --preview`: a pass goes by what is remembered");
  if (given.pods === "-" && !isPreview(given))
    return fault(EXIT.badInput, "--pods: a pass reads the pods more than once: give a file");
  const config = configOf(given, cli.env);
  if (!config.ok) return config;
  const world = worldOf(config.value, given.pods);
  const pods = await world.readPods();
  if (pods.pods === null) return fault(EXIT.badInput, ...pods.problems.map(({ message }) => message));
  const job = { kind: KIND[what], given, config: config.value, terminal: cli.terminal };
  if (!isPreview(given)) return (await import("./pass.ts")).pass({ ...job, world });
  return (await import("./preview.ts")).preview({ ...job, world: { ...world, readPods: async () => pods } });
}
