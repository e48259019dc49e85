import { spawnSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { parse, stringify } from "yaml";
import { scratch } from "../actuator/manifests/scratch.ts";
import {
  ALERTS,
  type Any,
  DASHBOARD,
  metricsAsked,
  metricsOf,
  namesIn,
  prometheus,
  QUERIES,
  ROOT,
  RULES,
  type Served,
  scraping,
  servedApi,
  servedCollector,
  servedDaemon,
  textOf,
} from "./monitoring.ts";

const programAt = (name: string): boolean => spawnSync(name, ["--version"]).status === 0;
const HAS_PROMTOOL = programAt("promtool");
const HAS_PROMETHEUS = programAt("prometheus");
const without = (has: boolean, name: string): string => (has ? "" : ` (skipped: there is no ${name})`);
const promtool = (args: readonly string[], input = "") => {
  const { status, stdout, stderr } = spawnSync("promtool", args, { encoding: "utf8", input });
  return { status, text: stdout + stderr };
};
const RULE_TESTS = ["rules-test.yaml", "rules-day-test.yaml"].map((name) => join(ROOT, "test/data/prometheus", name));
const unitTests = (): readonly Any[] => RULE_TESTS.flatMap((file) => parse(readFileSync(file, "utf8")).tests);

const endings: (() => unknown)[] = [];
let targets: { readonly api: Served & { readonly token: string }; readonly collector: Served; readonly daemon: Served };
let texts: Readonly<Record<keyof typeof targets, string>>;
beforeAll(async () => {
  const onEnd = (end: () => unknown) => void endings.unshift(end);
  targets = { api: await servedApi(onEnd), collector: await servedCollector(onEnd), daemon: await servedDaemon(onEnd) };
  const [api, collector, daemon] = await Promise.all(Object.values(targets).map(metricsOf));
  texts = { api: api ?? "", collector: collector ?? "", daemon: daemon ?? "" };
});
afterAll(async () => {
  for (const end of endings) await end();
});
/**
 * The names that Prometheus may query: all metrics that the three programs export, Prometheus' own series, and recorded
 * rules.
 */
const exported = () => namesIn(Object.values(texts).join("\n"));
const known = (): ReadonlySet<string> =>
  new Set([...exported().all, "up", "ALERTS", ...RULES.flatMap(({ record }) => record ?? [])]);

describe("the alert rules", () => {
  test("query only metrics that the programs export", () => {
    const names = known();
    const wrong = RULES.flatMap(({ alert, expr }) =>
      metricsAsked(expr).flatMap((name) => (names.has(name) ? [] : [`${alert}: ${name}`])),
    );
    expect(wrong).toEqual([]);
    expect(RULES.flatMap(({ expr }) => metricsAsked(expr)).length).toBeGreaterThan(40);
    expect(names.has("nodewise_http_request_duration_seconds")).toBe(false);
  });
  test.each(ALERTS)(
    "$alert has a waiting time, a severity, and a description with a runbook",
    ({ alert, for: wait, labels, annotations }) => {
      expect(alert).toMatch(/^Nodewise[A-Z]/);
      expect(wait).toMatch(/^\d+[mh]$/);
      expect(["critical", "warning", "info"]).toContain(labels?.["severity"]);
      expect(Object.keys(annotations ?? {})).toEqual(["summary", "description", "runbook_url"]);
      const [page = "", section] = (annotations?.["runbook_url"] ?? "").split("#");
      expect(page).toMatch(/^docs\/guide\/[a-z-]+\.md$/);
      const titles = Array.from(readFileSync(join(ROOT, page), "utf8").matchAll(/^##+ (.+)$/gm), ([, title = ""]) =>
        title
          .toLowerCase()
          .replace(/[^\w -]/g, "")
          .replaceAll(" ", "-"),
      );
      if (section !== undefined) expect(titles).toContain(section);
    },
  );
  test("have each a unit test that fires and one that does not", () => {
    const looks: readonly Any[] = unitTests().flatMap((one) => one.alert_rule_test);
    const names = ALERTS.map(({ alert }) => alert).sort();
    const of = (fires: boolean) =>
      [
        ...new Set(looks.filter((look) => (look.exp_alerts ?? []).length > 0 === fires).map((look) => look.alertname)),
      ].sort();
    expect(of(true)).toEqual(names);
    expect(of(false)).toEqual(names);
  });
  test.skipIf(!HAS_PROMTOOL)(`are accepted by promtool${without(HAS_PROMTOOL, "promtool")}`, () => {
    const taken = promtool(["check", "rules", join(ROOT, "api/deploy/prometheus/rules.yaml")]);
    expect(taken).toEqual({ status: 0, text: expect.stringContaining(`${RULES.length} rules found`) });
    const broken = scratch({ "rules.yaml": textOf("prometheus/rules.yaml").replace("for: 5m", "for: soon") });
    expect(promtool(["check", "rules", join(broken, "rules.yaml")]).status).not.toBe(0);
  });
  test.skipIf(!HAS_PROMTOOL)(
    `pass their unit tests, which fail with changed rules${without(HAS_PROMTOOL, "promtool")}`,
    () => {
      expect(promtool(["test", "rules", ...RULE_TESTS])).toMatchObject({ status: 0 });
      const wanted = ({ name }: Any) => name === "NodewiseDaemonCannotWrite";
      const others = scratch({
        "rules.yaml": textOf("prometheus/rules.yaml").replace(
          "nodewise_unwritable_files > 0",
          "nodewise_unwritable_files > 5",
        ),
        "test.yaml": stringify({
          rule_files: ["rules.yaml"],
          evaluation_interval: "1m",
          tests: unitTests().filter(wanted),
        }),
      });
      const failed = promtool(["test", "rules", join(others, "test.yaml")]);
      expect(failed).toEqual({ status: 1, text: expect.stringContaining("NodewiseDaemonCannotWrite") });
    },
  );
});

test.skipIf(!HAS_PROMTOOL).each(["api", "collector", "daemon"] as const)(
  `promtool finds no fault in the metrics of the %s${without(HAS_PROMTOOL, "promtool")}`,
  (program) => {
    const text = texts[program];
    expect(text).toContain("nodewise_");
    if (program !== "daemon") expect(text).toContain("nodejs_active_handles{");
    expect(promtool(["check", "metrics"], text)).toEqual({ status: 0, text: "" });
    const faulty = `${text}# HELP nodewise_things_total Things\n# TYPE nodewise_things_total gauge\nnodewise_things_total 1\n`;
    expect(promtool(["check", "metrics"], faulty).status).toBe(3);
  },
);

describe("the Grafana dashboard", () => {
  const { panels } = DASHBOARD as { panels: readonly Any[] };
  test("has panels that do not overlap, with unique ids and the selected data source", () => {
    expect(new Set(panels.map(({ id }) => id)).size).toBe(panels.length);
    expect(panels.length).toBeGreaterThan(30);
    const cells = panels.flatMap(({ gridPos: { x, y, w, h } }) =>
      Array.from({ length: w * h }, (_, i) => `${x + (i % w)},${y + Math.floor(i / w)}`),
    );
    expect(new Set(cells).size).toBe(cells.length);
    expect(panels.filter(({ gridPos: { x, w } }) => x + w > 24)).toEqual([]);
    const source = { type: "prometheus", uid: `\${${DASHBOARD.templating.list[0].name}}` };
    for (const { type, title, datasource, targets: queries = [] } of panels) {
      expect(title).not.toBe("");
      if (type === "row") continue;
      expect([title, datasource, queries.length > 0]).toEqual([title, source, true]);
      expect(queries.map((query: Any) => query.datasource)).toEqual(queries.map(() => source));
      expect(new Set(queries.map(({ refId }: Any) => refId)).size).toBe(queries.length);
    }
  });
  test("queries only metrics that the programs export, with variables that it defines", () => {
    const names = known();
    const variables: readonly Any[] = DASHBOARD.templating.list;
    expect(variables.map(({ name }) => name)).toEqual(["datasource", "node", "instance"]);
    const asked = variables
      .filter(({ type }) => type === "query")
      .map(({ query }) => ({ panel: "variables", expr: query.query }));
    for (const { expr } of asked) expect(expr).toMatch(/^label_values\(\w+, \w+\)$/);
    const first = asked.map(({ panel, expr }) => ({
      panel,
      expr: expr.slice("label_values(".length).split(",")[0] ?? "",
    }));
    const wrong = [...QUERIES, ...first].flatMap(({ panel, expr }) =>
      metricsAsked(expr).flatMap((name) => (names.has(name) ? [] : [`${panel}: ${name}`])),
    );
    expect(wrong).toEqual([]);
    expect(QUERIES.filter(({ expr }) => expr.includes("$"))).toEqual([]);
  });
  test.skipIf(!HAS_PROMTOOL)(`has queries that promtool can parse${without(HAS_PROMTOOL, "promtool")}`, () => {
    const rules = QUERIES.map(({ expr }, i) => ({ record: `nodewise:query:${i}`, expr }));
    const taken = (those: Any) =>
      promtool(["check", "rules", join(scratch({ "queries.yaml": stringify(those) }), "queries.yaml")]);
    expect(taken({ groups: [{ name: "queries", rules }] })).toMatchObject({ status: 0 });
    const broken = [...rules, { record: "nodewise:query:x", expr: "sum by (node (nodewise_node_pressure)" }];
    expect(taken({ groups: [{ name: "queries", rules: broken }] }).status).not.toBe(0);
  });
});

describe("the scrape configuration", () => {
  const pods = {
    "nodewise-api": { pod_label_app: "nodewise-api", pod_container_port_name: "api", pod_name: "nodewise-api-0" },
    "nodewise-collector": {
      pod_label_app: "nodewise-collector",
      pod_container_port_name: "status",
      pod_name: "nodewise-collector-0",
    },
    "nodewise-daemon": { pod_label_app: "nodewise-observer", pod_node_name: "n1" },
  };
  const configured = (): Any => {
    const { api, collector, daemon } = targets;
    return scraping({
      "nodewise-api": { ...api, labels: pods["nodewise-api"] },
      "nodewise-collector": { ...collector, labels: pods["nodewise-collector"] },
      "nodewise-daemon": { ...daemon, labels: pods["nodewise-daemon"] },
    });
  };
  const directory = () =>
    scratch({ "rules.yaml": textOf("prometheus/rules.yaml"), "nodewise.token": targets.api.token });

  test("selects the pods of the manifests by namespace, label and port", () => {
    const text = textOf("prometheus/prometheus.yaml");
    const objects = [
      "kubernetes/api.yaml",
      "kubernetes/collector.yaml",
      "../../actuator/deploy/observe.yaml",
      "../../actuator/deploy/enforce.yaml",
    ]
      .map(textOf)
      .join("\n---\n");
    for (const { pod_label_app: app } of Object.values(pods)) expect(objects).toContain(`labels: {app: ${app}}`);
    expect(objects).toContain("labels: {app: nodewise-actuator}");
    expect(text).toContain("nodewise-(?:actuator|observer)");
    for (const port of ["api", "status"]) expect(objects).toContain(`- name: ${port}\n          containerPort`);
    const jobs: readonly Any[] = parse(text).scrape_configs;
    const namespaces = jobs.map((job) => job.kubernetes_sd_configs[0].namespaces.names);
    expect(namespaces).toEqual([["nodewise-api"], ["nodewise-api"], ["nodewise"]]);
    expect(jobs.map((job) => job.job_name)).toEqual(Object.keys(pods));
    expect(new Set(Array.from(textOf("prometheus/rules.yaml").matchAll(/job="([\w-]+)"/g), ([, job]) => job))).toEqual(
      new Set(Object.keys(pods)),
    );
  });
  test.skipIf(!HAS_PROMTOOL)(`is accepted by promtool${without(HAS_PROMTOOL, "promtool")}`, () => {
    const there = directory();
    const taken = (file: string, text: string) => {
      const folder = scratch({
        [file]: text,
        "nodewise.token": "token",
        "rules.yaml": textOf("prometheus/rules.yaml"),
      });
      return promtool(["check", "config", join(folder, file)]);
    };
    expect(existsSync(join(there, "rules.yaml"))).toBe(true);
    expect(taken("prometheus.yaml", stringify(configured()))).toMatchObject({ status: 0 });
    const wrong = { ...configured(), rule_files: ["others.yaml"] };
    expect(taken("prometheus.yaml", stringify(wrong)).status).not.toBe(0);
  });
  test.skipIf(!HAS_PROMETHEUS)(
    `lets Prometheus scrape all programs, and every query and rule has a result${without(HAS_PROMETHEUS, "prometheus")}`,
    async () => {
      const configuration = { ...configured(), global: { scrape_interval: "1s", evaluation_interval: "1s" } };
      const ask = await prometheus(directory(), stringify(configuration));
      const query = async (expr: string): Promise<readonly Any[]> =>
        (await ask(`query?query=${encodeURIComponent(expr)}`)).result;
      // a rate needs two samples, and a failed scrape has none
      await vi.waitFor(async () => expect(await query("count(sum_over_time(up[1m]) > 2) == 3")).toHaveLength(1), {
        timeout: 60_000,
        interval: 500,
      });
      const instances = (await query("up")).map(({ metric: { job, instance }, value }) => [job, instance, value[1]]);
      expect(instances.sort()).toEqual([
        ["nodewise-api", "nodewise-api-0", "1"],
        ["nodewise-collector", "nodewise-collector-0", "1"],
        ["nodewise-daemon", "n1", "1"],
      ]);
      const { sampled } = exported();
      const empty: string[] = [];
      let filled = 0;
      for (const { panel, expr } of QUERIES) {
        const isFilled = metricsAsked(expr).every((name) => sampled.has(name) || name === "up");
        if (!isFilled) continue;
        filled++;
        if ((await query(expr)).length === 0) empty.push(`${panel}: ${expr}`);
      }
      expect(empty).toEqual([]);
      expect(filled).toBeGreaterThan(40);
      const { groups } = (await ask("rules")) as { groups: readonly Any[] };
      const faults = groups.flatMap(({ rules }) => rules.filter((rule: Any) => rule.health !== "ok" || rule.lastError));
      expect(faults).toEqual([]);
      const active = groups.flatMap(({ rules }) =>
        rules.filter((rule: Any) => rule.state === "pending").map((rule: Any) => rule.name),
      );
      expect(active).toContain("NodewiseNodeUnderPressure");
      expect(active).toContain("NodewiseCollectorCannotReadNodes");
      expect(active).not.toContain("NodewiseDaemonDown");
    },
  );
});
