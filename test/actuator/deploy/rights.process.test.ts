import { spawnSync } from "node:child_process";
import { chmodSync, chownSync, mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { parse, parseAllDocuments, stringify } from "yaml";
import { LAUNCHER, NODE } from "../../cli/run.ts";
import { podYaml } from "../../kit/manifests.ts";
import { scratch } from "../manifests/scratch.ts";

const DEPLOY = join(import.meta.dirname, "../../../actuator/deploy");
interface Container {
  readonly args: readonly string[];
  readonly securityContext: Readonly<Record<string, unknown>>;
  readonly volumeMounts: readonly Readonly<Record<string, unknown>>[];
}
function objectsOf(file: string) {
  // biome-ignore lint/suspicious/noExplicitAny: Kubernetes objects, of which each test reads different fields
  const objects: readonly any[] = parseAllDocuments(readFileSync(join(DEPLOY, file), "utf8")).map((d) => d.toJS());
  const of = (kind: string) => objects.find((one) => one.kind === kind);
  const pod = of("DaemonSet").spec.template.spec;
  return { namespace: of("Namespace"), configMap: of("ConfigMap"), pod, container: pod.containers[0] as Container };
}
const observer = objectsOf("observe.yaml");
const enforcer = objectsOf("enforce.yaml");

test("both manifests have a namespace with the privileged Pod Security level", () => {
  const level = (mode: string) => [`pod-security.kubernetes.io/${mode}`, "privileged"];
  expect(observer.namespace.metadata.labels).toEqual(Object.fromEntries(["enforce", "audit", "warn"].map(level)));
  expect(enforcer.namespace).toEqual(observer.namespace);
});

test("the observer lists pods with resourceVersion 0, which the API server answers from its cache", () => {
  const { args } = observer.container;
  const [from] = args.flatMap((arg) => (arg.startsWith("--pods-url=") ? [arg.slice("--pods-url=".length)] : []));
  const { searchParams } = new URL((from ?? "").replace("$(NODE_NAME)", "n1"));
  expect([...searchParams]).toEqual([
    ["fieldSelector", "spec.nodeName=n1"],
    ["resourceVersion", "0"],
  ]);
});

test("the enforcer mounts the image disk read-only", () => {
  const { pod, container } = enforcer;
  expect(container.volumeMounts.find(({ mountPath }) => mountPath === "/var/lib/nodewise-containerd")).toMatchObject({
    name: "images",
    readOnly: true,
  });
  expect(pod.volumes.find(({ name }: { name: string }) => name === "images").hostPath.path).toBe(
    "/var/lib/nodewise-containerd",
  );
});

describe("the user that observe.yaml runs as", () => {
  const { runAsNonRoot, runAsUser: uid, runAsGroup: gid } = observer.container.securityContext;
  const asUser = { uid: uid as number, gid: gid as number };
  const reads = (): boolean =>
    process.getuid?.() === 0 && spawnSync(NODE, [LAUNCHER, "--version"], { ...asUser, env: {} }).status === 0;
  const isAble = reads();
  const skipped = isAble ? "" : " (skipped: it takes root, and a project that all may read)";

  /** Runs one pass over this machine's cgroups. */
  function observe(configurationMode: number) {
    const dir = scratch({
      "config.yaml": stringify({ kind: "KubeletConfiguration" }),
      "pods/a.yaml": podYaml("a"),
    });
    for (const name of ["", "pods"]) chmodSync(join(dir, name), 0o755);
    chmodSync(join(dir, "config.yaml"), configurationMode);
    mkdirSync(join(dir, "state"));
    chownSync(join(dir, "state"), asUser.uid, asUser.gid);
    const { podsTokenFile: _, podsCaFile: __, ...settings } = parse(observer.configMap.data["actuator.yaml"]);
    const own = {
      kubeletConfiguration: join(dir, "config.yaml"),
      manifests: join(dir, "pods"),
      stateDir: join(dir, "state"),
    };
    const input = stringify({ ...settings, ...own, statusListen: "off" });
    const args = [LAUNCHER, "actuator", "--settings", "-", "--once", "-o", "json"];
    const { status, stdout } = spawnSync(NODE, args, { ...asUser, env: {}, input, encoding: "utf8" });
    const { cgroups, problems } = JSON.parse(stdout);
    return { status, dir, problems, pods: cgroups?.cgroups.filter((one: { level: string }) => one.level === "pod") };
  }

  test("is not root", () => {
    expect([runAsNonRoot, asUser]).toEqual([true, { uid: 65534, gid: 65534 }]);
  });
  test.skipIf(!isAble)(`can read every file that a pass needs${skipped}`, () => {
    const { status, problems, pods } = observe(0o644);
    expect([status, problems, pods.length]).toEqual([0, [], 1]);
  });
  test.skipIf(!isAble)(`gets a problem that names the configuration file when only root may read it${skipped}`, () => {
    const { dir, problems } = observe(0o600);
    expect(problems.map(({ message }: { message: string }) => message)).toEqual([
      expect.stringContaining(`${join(dir, "config.yaml")}: cannot be read (EACCES)`),
    ]);
  });
});
