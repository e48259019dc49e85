import { spawnSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { parse } from "yaml";
import { postgresSetting } from "../../db/postgres/setting.ts";
import { scratch } from "../actuator/manifests/scratch.ts";
import { run } from "../cli/run.ts";
import {
  type Any,
  deployed,
  deployedWith,
  isPlaced,
  KUBECTL,
  kustomization,
  named,
  plain,
  ROOT,
  textOf,
} from "./deployed.ts";

/** Checks that every flag of a command line exists. */
async function expectCommand(args: readonly string[]): Promise<void> {
  const [command = "", ...flags] = args;
  const { code, stdout } = await run([command, "--help"]);
  expect(code).toBe(0);
  const known = new Set(stdout.match(/--[a-z0-9-]+/g));
  const named = flags.filter((flag) => flag.startsWith("--")).map((flag) => flag.split("=")[0]);
  expect(named.filter((flag) => !known.has(flag ?? ""))).toEqual([]);
}

describe.each(["nodewise-api", "nodewise-collector"])("the Deployment %s", (name) => {
  const deployment = named(plain, "Deployment", name);
  const { template, selector } = deployment.spec;
  const [container] = template.spec.containers;

  test("starts a command with options that exist", () => expectCommand(container.args));
  test("meets the restricted pod security standard, and mounts each of its volumes", () => {
    expect(template.metadata.labels).toEqual(selector.matchLabels);
    expect(template.spec.securityContext).toMatchObject({
      runAsNonRoot: true,
      seccompProfile: { type: "RuntimeDefault" },
    });
    expect(container.securityContext).toEqual({
      allowPrivilegeEscalation: false,
      readOnlyRootFilesystem: true,
      capabilities: { drop: ["ALL"] },
    });
    const volumes = template.spec.volumes.map((volume: Any) => volume.name);
    expect(container.volumeMounts.map((mount: Any) => mount.name)).toEqual(volumes);
    expect(named(plain, "ServiceAccount", template.spec.serviceAccountName)).toBeDefined();
  });
});

test("the API has no rights in the cluster, and the collector has read rights only", () => {
  expect(named(plain, "ServiceAccount", "nodewise-api").automountServiceAccountToken).toBe(false);
  expect(plain.filter(({ kind }) => kind === "ClusterRole").map(({ rules }) => rules)).toEqual([
    [
      { apiGroups: [""], resources: ["nodes", "pods", "events"], verbs: ["get", "list", "watch"] },
      { apiGroups: [""], resources: ["nodes/configz", "nodes/stats", "nodes/pods"], verbs: ["get"] },
      { apiGroups: ["resource.k8s.io"], resources: ["resourceclaims"], verbs: ["get", "list", "watch"] },
      { apiGroups: ["resource.k8s.io"], resources: ["resourceslices", "deviceclasses"], verbs: ["list"] },
    ],
  ]);
  const binding = named(plain, "ClusterRoleBinding", "nodewise-collector");
  expect(binding.subjects).toEqual([
    { kind: "ServiceAccount", name: "nodewise-collector", namespace: kustomization.namespace },
  ]);
});

test.skipIf(!KUBECTL)(
  `kubectl builds the manifests, plain and with TLS${KUBECTL ? "" : " (skipped: there is no kubectl)"}`,
  async () => {
    const objects = deployed();
    expect(objects).toHaveLength(plain.length);
    expect(objects.filter((object) => !isPlaced(object))).toEqual([]);
    const withTls = deployedWith("tls");
    for (const name of ["nodewise-api", "nodewise-collector"]) {
      const { containers, volumes } = named(withTls, "Deployment", name).spec.template.spec;
      await expectCommand(containers[0].args);
      const mounts = new Map(containers[0].volumeMounts.map((mount: Any) => [mount.name, mount.mountPath]));
      expect([...mounts.keys()]).toEqual(volumes.map((volume: Any) => volume.name));
      if (name === "nodewise-collector") {
        expect(containers[0].args).toContain("--api=https://nodewise-api.nodewise-api.svc:8787");
        expect(containers[0].args).not.toContain("--api=http://nodewise-api:8787");
        expect(containers[0].env).toEqual([{ name: "NODE_EXTRA_CA_CERTS", value: `${mounts.get("ca")}/ca.crt` }]);
        continue;
      }
      for (const probe of ["startupProbe", "readinessProbe", "livenessProbe"])
        expect(containers[0][probe].httpGet.scheme).toBe("HTTPS");
      expect(containers[0].args).toContain(`--tls-cert=${mounts.get("tls")}/tls.crt`);
    }
  },
);

test.skipIf(!KUBECTL)(
  "with Postgres the manifests run several replicas, ready when the history is writable, without volumes",
  async () => {
    for (const objects of [deployedWith("postgres"), deployedWith("tls", "postgres")]) {
      expect(objects.filter((object) => !isPlaced(object))).toEqual([]);
      expect(objects.filter(({ kind }) => kind === "PersistentVolumeClaim")).toEqual([]);
      const { spec } = named(objects, "Deployment", "nodewise-api");
      expect(spec.replicas).toBeGreaterThan(1);
      expect(spec.strategy.type).toBe("RollingUpdate");
      const [container] = spec.template.spec.containers;
      await expectCommand(container.args);
      expect(container.args.join(" ")).not.toMatch(/--data-dir/);
      const env = new Map<string, Any>(container.env.map((one: Any) => [one.name, one]));
      expect(env.get("NODEWISE_TOKEN_SHA256").valueFrom.secretKeyRef.name).toBe("nodewise-api");
      const mounts = new Map(container.volumeMounts.map((mount: Any) => [mount.name, mount.mountPath]));
      expect([...mounts.keys()].sort()).toEqual(spec.template.spec.volumes.map((volume: Any) => volume.name).sort());
      expect(mounts.has("history")).toBe(false);
      const place = mounts.get("postgres");
      expect(env.get("NODEWISE_DATABASE_PASSWORD_FILE").value).toBe(`${place}/password`);
      const setting = postgresSetting(env.get("NODEWISE_DATABASE").value);
      if (!setting.ok) throw new Error(setting.error);
      expect(new URL(setting.value.url).searchParams.get("sslmode")).toBe("verify-full");
      expect(new URL(setting.value.url).searchParams.get("sslrootcert")).toBe(`${place}/ca.crt`);
      expect([container.readinessProbe.httpGet.path, container.livenessProbe.httpGet.path]).toEqual([
        "/readyz",
        "/healthz",
      ]);
      expect(named(objects, "PodDisruptionBudget", "nodewise-api").spec.selector).toEqual(spec.selector);
    }
  },
);

test("the Postgres compose file passes the password as a file, waits for the server and opens no port of it", async () => {
  const { services, secrets } = parse(textOf("compose.postgres.yaml"));
  await expectCommand(services.api.command);
  const [name = ""] = Object.keys(secrets);
  for (const service of [services.api, services.postgres]) expect(service.secrets).toEqual([name]);
  const file = `/run/secrets/${name}`;
  expect(services.api.environment.NODEWISE_DATABASE_PASSWORD_FILE).toBe(file);
  expect(services.postgres.environment.POSTGRES_PASSWORD_FILE).toBe(file);
  expect(postgresSetting(services.api.environment.NODEWISE_DATABASE)).toMatchObject({ ok: true });
  expect(new URL(services.api.environment.NODEWISE_DATABASE).hostname).toBe("postgres");
  expect(services.api.depends_on.postgres.condition).toBe("service_healthy");
  expect(services.postgres.ports).toBeUndefined();
});

test("the compose file uses options that exist, and publishes its port on loopback only", async () => {
  const { services } = parse(textOf("compose.yaml"));
  for (const { command } of Object.values(services) as Any[]) await expectCommand(command);
  expect(services.api.ports).toEqual(["127.0.0.1:8787:8787"]);
});

describe.each(["nodewise-api.service", "nodewise-collector.service"])("the systemd unit %s", (file) => {
  const unit = textOf(file);
  test("starts a command with options that exist", () =>
    expectCommand((/^ExecStart=\S+ (.*)$/m.exec(unit)?.[1] ?? "").split(" ")));
  const found = spawnSync("systemd-analyze", ["--version"]).status === 0;
  test.skipIf(!found)(`is accepted by systemd-analyze${found ? "" : " (skipped: there is no systemd-analyze)"}`, () => {
    const path = join(scratch({}), file);
    // an existing program, since systemd checks that the program exists
    writeFileSync(path, unit.replace("/opt/nodewise/bin/nodewise", join(ROOT, "api/cli/nodewise.js")));
    const verified = spawnSync("systemd-analyze", ["verify", "--man=no", path], { encoding: "utf8" });
    expect([verified.status, verified.stderr.split("\n").filter((line) => line.includes(file))]).toEqual([0, []]);
  });
});
