import { readFileSync } from "node:fs";
import { join } from "node:path";
import { checkSettings } from "../../actuator/core/config.ts";
import { ROOT } from "./sessions.ts";

/** The path of the page, and the path of the file from which the page is generated. */
export const SETTINGS_PAGE = "docs/reference/settings.md";
const FILE = "actuator/deploy/actuator.yaml";

const HEAD = `# Settings of the daemon

\`nodewise actuator --settings FILE\` reads them from YAML or JSON; flags of the same names (\`--interval-seconds\`) override the file.
A change of a setting that is marked **live** takes effect after \`systemctl reload\` or SIGHUP; any other change waits for a restart, which stops no pod.
[actuator.yaml](../../${FILE}) is such a file with every setting commented out; \`node test/docs/update.ts\` writes this page from it.
`;
const TABLE = `
| setting | default | what it does |
| --- | --- | --- |
`;

interface Setting {
  readonly name: string;
  readonly value: string;
}

/** A row of the table: all settings that one comment describes share a row. */
function row(settings: readonly Setting[], comment: string, withDefault: ReadonlySet<string>): string {
  const names = settings.map(({ name }) => `\`${name}\``).join("<br>");
  const shown = ({ name, value }: Setting): string =>
    withDefault.has(name) ? `\`${value}\`` : name === "nodeName" ? "the host's name" : `none (such as \`${value}\`)`;
  const live = /\[live(?:, [^\]]*)?\]/;
  const words = comment.replace(live, "**live**").replaceAll("|", "\\|");
  return `| ${names} | ${settings.map(shown).join("<br>")} | ${words} |\n`;
}

/** The text of the page. */
export function settingsPage(): string {
  const checked = checkSettings({ stateDir: "/var/lib/nodewise" });
  if (!checked.ok) throw new Error(JSON.stringify(checked.error));
  const withDefault = new Set(Object.keys(checked.value).filter((name) => name !== "nodeName" && name !== "stateDir"));
  let page = HEAD;
  for (const block of readFileSync(join(ROOT, FILE), "utf8").split(/\n\n/)) {
    const title = /^# --- (.+?) -*$/m.exec(block)?.[1];
    if (title !== undefined) page += `\n## ${title}\n${TABLE}`;
    const settings = Array.from(block.matchAll(/^#(\w+): (.*)$/gm), ([, name = "", value = ""]) => ({ name, value }));
    const comment = Array.from(block.matchAll(/^# (?!--- )(.*)$/gm), ([, line]) => line).join(" ");
    if (settings.length > 0) page += row(settings, comment, withDefault);
  }
  return page;
}
