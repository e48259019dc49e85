import type { NodeStatus, PodRow } from "../../../actuator/status/node-status.ts";
import { ok, type Result } from "../../model/result.ts";
import type { Cli } from "../cli.ts";
import { EXIT, type Fault, fault, type Outcome } from "../exit.ts";
import { type Form, printData } from "../output.ts";
import { eventsTable } from "./events-table.ts";
import type { PodsGiven } from "./given.ts";
import { headText } from "./head-text.ts";
import { meantText } from "./meant-pods.ts";
import { podText } from "./pod-text.ts";
import { podsText } from "./pods-table.ts";
import { type Seen, statusSource } from "./read-status.ts";
import { refusedText } from "./refused-text.ts";
import { showOften } from "./watch.ts";

/** Prints the pods of a node, or everything of one. */
export async function pods(wanted: string | undefined, given: PodsGiven, cli: Cli): Promise<Outcome> {
  const source = statusSource(given, cli);
  if (!source.ok) return source;
  return showOften(source.value, given, cli, (seen, terminal) => {
    const narrowed = { ...seen, status: ofNamespace(seen.status, given.namespace) };
    return wanted === undefined
      ? printAll(narrowed, given, terminal)
      : printOne(narrowed, wanted, given.output, terminal);
  });
}

const NOT_RUN =
  "Others run these pods; this daemon compares their cgroups with what is decided (`nodewise pods NAME`: of one pod). With `mode: enforce` and `pods: enforce` in its settings it runs pods itself.\n";

const ofNamespace = (status: NodeStatus, namespace: string | undefined): NodeStatus =>
  namespace === undefined
    ? status
    : {
        ...status,
        pods: status.pods.filter((pod) => pod.namespace === namespace),
        refusedManifests: status.refusedManifests.filter(({ pod }) => pod.startsWith(`${namespace}/`)),
        events: status.events.filter(({ pod }) => pod.namespace === namespace),
      };

function printAll(seen: Seen, { output, events }: PodsGiven, terminal: Cli["terminal"]): Result<null, Fault> {
  const { status } = seen;
  if (output !== "table") printData(terminal, status, output);
  else {
    const parts = [
      podsText(status, terminal),
      refusedText(status.refusedManifests, terminal),
      status.runsPods === false ? terminal.paint("dim", NOT_RUN) : "",
      events === true ? eventsTable(status.events, status.at, terminal) : "",
    ];
    terminal.write(headText(seen, terminal) + parts.filter((part) => part !== "").join("\n"));
  }
  return ok(null);
}

function printOne(seen: Seen, wanted: string, output: Form, terminal: Cli["terminal"]): Result<null, Fault> {
  const { status } = seen;
  const found = status.pods.filter(({ namespace, name }) => wanted === `${namespace}/${name}` || wanted === name);
  const refused = status.refusedManifests.filter(({ pod }) => pod === wanted || pod.endsWith(`/${wanted}`));
  const names = new Set(found.map(({ namespace, name }) => `${namespace}/${name}`));
  if (names.size > 1)
    return fault(EXIT.badInput, `\`${wanted}\` is the name of ${[...names].join(" and of ")}: name one of them`);
  if (names.size === 0 && refused.length === 0)
    return fault(
      EXIT.failed,
      `node ${status.nodeName} has no pod \`${wanted}\`:${meantText(wanted, status)} \`nodewise pods\` lists those that it has`,
    );
  if (output !== "table") {
    const events = status.events.filter(({ pod }) => names.has(`${pod.namespace}/${pod.name}`));
    printData(
      terminal,
      { at: status.at, nodeName: status.nodeName, pods: found, refusedManifests: refused, events },
      output,
    );
  } else {
    const texts = found.map((pod: PodRow) => podText(pod, status, terminal));
    const parts = [...texts, refusedText(refused, terminal)].filter((part) => part !== "");
    terminal.write(headText(seen, terminal) + parts.join("\n"));
  }
  return ok(null);
}
