import type { Kind } from "../../api/model/decision.ts";
import type { KindSpec } from "../../api/model/kind-spec.ts";
import { KIND_SPECS } from "../../api/model/kinds.ts";
import { meaningOf } from "./reason-meanings.ts";

/** The page's path. */
export const KINDS_PAGE = "docs/reference/kinds.md";

const HEAD = `# Kinds of decisions

\`node test/docs/update.ts\` writes this page from the specs of the kinds (\`api/model/kinds.ts\`) and the sentences of the reasons (\`api/text\`).
The schemas of asks and decisions are in the API's OpenAPI document (\`/openapi.json\`, \`/docs\`).

- *ask* is the input in addition to the snapshot. *remembers* is what the next decision about the node uses of this one.
- \`explain: "reasons"\` (\`--explain reasons\`) adds to the answer the reason codes below, each with the numbers that the decision used. \`explain: "full"\` adds more
  reasons, for instance one for each image that stays.
- In a meaning, \`<name>\` is the number \`name\` of the reason. *it* is the object that the reason's \`at\` names: a pod, a container, a cgroup, a threshold.
`;
const code = (words: readonly string[]): string => words.map((word) => `\`${word}\``).join(", ");
const POD = {
  none: "",
  object: "a v1.Pod, or NAMESPACE/NAME of one in the snapshot",
  name: "NAMESPACE/NAME of a pod in the snapshot",
};

function askOf({ ask }: KindSpec): string {
  if (ask.schema === null) return "nothing";
  const pod = POD[ask.pod];
  return `${code(Object.keys(ask.schema.form.shape))}${pod === "" ? "" : ` (\`pod\`: ${pod})`}`;
}
function remembers({ facts }: KindSpec): string {
  if (facts === null) return "nothing";
  return facts.forgottenAtBoot ? "its `next`, until the node reboots" : "its `next`, across reboots too";
}

const section = ([kind, spec]: readonly [string, KindSpec]): string => `
## ${kind}
Decides ${spec.decides}.

| | |
| --- | --- |
| ask | ${askOf(spec)} |
| snapshot | ${spec.traits.needsSnapshot ? (spec.traits.needsTime ? "needed, with the time of its stats" : "needed") : "not needed"} |
| remembers | ${remembers(spec)} |

| reason code | meaning |
| --- | --- |
${[...spec.reasons].sort().map(reasonRow).join("")}`;
const reasonRow = (reason: string): string => `| \`${reason}\` | ${cell(meaningOf(reason))} |\n`;
/** A text in a table. A placeholder is code: Markdown would take it for an HTML tag. */
const cell = (text: string): string => text.replaceAll("|", "\\|").replace(/<\w+>/g, "`$&`");

/** The text of the page, generated from the registry of kinds. */
export const kindsPage = (): string =>
  `${HEAD}${Object.entries<KindSpec>(KIND_SPECS satisfies Record<Kind, KindSpec>)
    .map(section)
    .join("")}`;

/** The README with its table of kinds generated again. */
export const withKinds = (readme: string): string =>
  readme.replace(
    /(\| kind \| what it answers \|\n\| --- \| --- \|\n)(?:\|.*\n)*/,
    (_, head: string) =>
      head +
      Object.entries<KindSpec>(KIND_SPECS)
        .map(([kind, { decides }]) => `| \`${kind}\` | ${decides} |\n`)
        .join(""),
  );
