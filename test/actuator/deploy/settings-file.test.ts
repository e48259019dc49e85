import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { checkSettings, LIVE_SETTINGS, readSettingsFile, SETTINGS } from "../../../actuator/core/config.ts";
import { scratch } from "../manifests/scratch.ts";

const FILE = join(import.meta.dirname, "../../../actuator/deploy/actuator.yaml");
const text = readFileSync(FILE, "utf8");
/** Each setting's line, and the whole comment above it. */
const entries = text.split(/\n\n/).flatMap((block) => {
  const comment = block.replace(/^#\w.*$/gm, "");
  return Array.from(block.matchAll(/^#(\w+): .*$/gm), ([line, name]) => ({ name: name as string, line, comment }));
});
const uncommented = async () => {
  const file = join(scratch({ "all.yaml": entries.map(({ line }) => line.slice(1)).join("\n") }), "all.yaml");
  const read = await readSettingsFile(file);
  if (!read.ok) throw new Error(read.error.join());
  return read.value.settings;
};
/** The file shows an example for these settings, since they have no default that a file could contain. */
const EXAMPLES = [
  ...["nodeName", "stateDir", "kubeletConfiguration", "manifests", "podsUrl", "podsTokenFile", "podsCaFile"],
  ...["api", "apiTokenFile", "statusListen"],
  ...["minimumContainerTTL", "maximumDeadContainersPerContainer", "maximumDeadContainers"],
];

test("the example settings file has each setting of the schema once, with a comment", () => {
  expect(entries.map(({ name }) => name).sort()).toEqual([...SETTINGS].sort());
  for (const { name, comment } of entries) expect(comment.length, name).toBeGreaterThan(40);
});

test("the example settings file sets nothing as it is", async () => {
  const read = await readSettingsFile(FILE);
  expect(read.ok && read.value.settings).toEqual({});
});

test("the example settings file is valid with its lines uncommented, and shows the defaults", async () => {
  const { podsUrl, ...together } = await uncommented();
  const defaults = checkSettings({ stateDir: "/s" });
  const checked = checkSettings(together);
  if (!defaults.ok || !checked.ok) throw new Error(JSON.stringify([defaults, checked]));
  for (const name of SETTINGS) {
    if (EXAMPLES.includes(name)) continue;
    expect(checked.value[name], name).toBeDefined();
    expect(checked.value[name], name).toEqual(defaults.value[name]);
  }
  for (const name of EXAMPLES) if (name !== "podsUrl") expect(name in checked.value, name).toBe(true);
  expect(checkSettings({ stateDir: "/s", podsUrl }).ok).toBe(true);
});

test("the example settings file marks exactly the settings that a reload takes over", () => {
  const marked = entries.filter(({ name, comment }) => {
    // a comment above several settings describes all of them
    return /\[live(?:, [^\]]*)?\]/.test(comment) && SETTINGS.includes(name as (typeof SETTINGS)[number]);
  });
  expect(marked.map(({ name }) => name).sort()).toEqual([...LIVE_SETTINGS].sort());
});

test("all faults of a settings file are reported at once, with the line, the value and the allowed values", async () => {
  const file = join(
    scratch({
      "actuator.yaml": [
        "# settings",
        "mode: enforced",
        "manifest: /pods",
        "intervalSeconds: '5'",
        "api: localhost",
        "drain:",
        "retrySeconds: 0",
        "nothing: 1",
        "pods: off",
        "nodeName: n",
      ].join("\n"),
    }),
    "actuator.yaml",
  );
  const read = await readSettingsFile(file);
  if (!read.ok) throw new Error(read.error.join());
  const checked = checkSettings({ stateDir: "/s", ...read.value.settings });
  expect(checked.ok ? [] : checked.error.map((fault) => read.value.faultText(fault)).sort()).toEqual([
    `${file}:10:11: nodeName: must be a text, not \`false\` (which YAML makes of yes, no, y, n, on and off: quote a text)`,
    `${file}:2:7: mode: must be observe or enforce, not the text \`enforced\``,
    `${file}:3:11: manifest: no such setting; manifests?`,
    `${file}:4:18: intervalSeconds: must be a number, not the text \`5\``,
    `${file}:5:6: api: must be an address such as https://node-1:10250/pods, not the text \`localhost\``,
    `${file}:6:7: drain: must be true or false, not empty`,
    `${file}:7:15: retrySeconds: must be at least 1, not \`0\``,
    `${file}:8:10: nothing: no such setting`,
  ]);
});

test.each([
  ["a: [", /actuator\.yaml:1:\d+: is not YAML/],
  ["mode: observe\nmode: enforce", /actuator\.yaml:2:1: has the key `mode` twice/],
  ['{\n "mode": "observe",\n "mode": "enforce"\n}', /actuator\.yaml:3:2: has the key `mode` twice/],
  ["mode: observe\n---\nmode: enforce", /actuator\.yaml:3:1: a second document/],
  ["- mode: observe", /actuator\.yaml:1:1: must be settings such as/],
])("a file that is no settings file is reported with the place: %j", async (content, pattern) => {
  const file = join(scratch({}), "actuator.yaml");
  writeFileSync(file, content);
  const read = await readSettingsFile(file);
  expect(read.ok ? "" : read.error.join("\n")).toMatch(pattern);
});

test.each([
  ["JSON", '{\n  "nodeName": "n",\n  "mode": "enforced",\n  "manifest": "/pods"\n}', "3:11", "4:15"],
  ["JSON in one line", '{"mode": "enforced", "manifest": "/pods"}', "1:10", "1:34"],
  ["JSON with tabs", '{\n\t"mode": "enforced",\r\n\t"manifest": "/pods"\n}', "2:10", "3:14"],
])("a fault in a settings file in %s is reported at its field", async (_, content, mode, manifest) => {
  const file = join(scratch({ "actuator.json": content }), "actuator.json");
  const read = await readSettingsFile(file);
  if (!read.ok) throw new Error(read.error.join());
  const checked = checkSettings({ stateDir: "/s", ...read.value.settings });
  expect(checked.ok ? [] : checked.error.map((fault) => read.value.faultText(fault)).sort()).toEqual([
    `${file}:${mode}: mode: must be observe or enforce, not the text \`enforced\``,
    `${file}:${manifest}: manifest: no such setting; manifests?`,
  ]);
});
