import { decideHere } from "../../../actuator/decide-here.ts";
import { type Look, look } from "../../../actuator/gc/look.ts";
import { gcPorts, lookSettings } from "../../../actuator/gc/open.ts";
import { factsOf, Memory } from "../../../actuator/memory.ts";
import type { ImageGcFacts } from "../../model/image-gc-facts.ts";
import { ok, type Result } from "../../model/result.ts";
import { EXIT, type Fault, fault, type Outcome } from "../exit.ts";
import type { Terminal } from "../terminal.ts";
import { explainOf, printAnswer } from "./answer.ts";
import type { GcGiven, GcJob } from "./given.ts";
import { assumeSeen } from "./seen.ts";

/** Lists and decides with what is remembered; removes nothing, remembers nothing. */
export async function preview({ kind, given, config, world, terminal }: GcJob): Promise<Outcome> {
  const ports = gcPorts(world, config);
  if (!ports.ok) return fault(EXIT.badInput, ports.error);
  const seen = await look(ports.value, lookSettings(config), 0);
  ports.value.runtime.close();
  if (!seen.ok) return fault(seen.error.from === "configuration" ? EXIT.badInput : EXIT.failed, seen.error.message);
  for (const { from, message } of seen.value.notices) terminal.warn(`nodewise: ${from}: ${message}`);
  if (kind === "container-gc" && config.manifests === undefined && given.pods === undefined)
    terminal.warn(`nodewise: ${NO_PODS}`);
  const remembered: Result<Remembered, Fault> =
    kind === "image-gc" ? rememberedOf(given, seen.value, config.stateDir, terminal) : ok({});
  if (!remembered.ok) return remembered;
  const { facts, assumed } = remembered.value;
  const answer = decideHere(kind, seen.value.snapshot, {
    ask: { operation: given.operation },
    facts: factsOf(kind, facts),
    explain: explainOf(given),
  });
  if (!answer.ok) return fault(EXIT.negative, answer.error.message);
  printAnswer({ kind, node: config.nodeName, at: seen.value.at, answer: answer.value, assumed }, given, terminal);
  return ok(answer.value.verdict === "fails" ? EXIT.negative : EXIT.ok);
}

export const NO_PODS =
  "no pods are given, so no container counts as one of a pod that is gone: give all of this node with --pods FILE";

interface Remembered {
  readonly facts?: unknown;
  readonly assumed?: string;
}
function rememberedOf(
  { seen }: GcGiven,
  { snapshot, lists, at }: Look,
  stateDir: string,
  terminal: Terminal,
): Result<Remembered, Fault> {
  const facts = new Memory(stateDir, (message) => terminal.warn(`nodewise: ${message}`)).factsFor("image-gc", snapshot);
  if (seen !== undefined) {
    const images = lists["images"] as Parameters<typeof assumeSeen>[1];
    const assumed = assumeSeen(facts as ImageGcFacts | undefined, images, Date.parse(at), seen);
    if (!assumed.ok) return fault(EXIT.badInput, assumed.error);
    return ok({ facts: assumed.value, assumed: `images that nobody remembers were first seen ${seen} ago` });
  }
  if (facts === undefined) {
    const advice = "--seen 1h takes them all as first seen an hour ago";
    terminal.warn(`nodewise: nothing is remembered in ${stateDir}: every image counts as first seen now (${advice})`);
  }
  return ok(facts === undefined ? {} : { facts });
}
