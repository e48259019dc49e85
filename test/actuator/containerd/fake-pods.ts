import type { Connection } from "../../../actuator/containerd/connection.ts";
import type {
  Container,
  ContainerStatus,
  CriMethod,
  SandboxStatus,
  TextMap,
} from "../../../actuator/containerd/messages.ts";
import { err, ok } from "../../../api/base/result.ts";
import { criContainer, fakeConnection } from "./fake-runtime.ts";

export interface FakeSandbox {
  readonly uid: string;
  readonly name?: string;
  /** In milliseconds, as all times here. */
  readonly createdAt: number;
  readonly attempt?: number;
  readonly state?: "SANDBOX_READY" | "SANDBOX_NOTREADY";
  /** Absent: the sandbox uses the host network. */
  readonly ips?: readonly string[];
}
export interface FakeContainer {
  readonly sandbox: string;
  readonly createdAt: number;
  readonly attempt?: number;
  readonly state?: "CONTAINER_CREATED" | "CONTAINER_RUNNING" | "CONTAINER_EXITED";
  readonly exitCode?: number;
  readonly reason?: string;
  readonly labels?: TextMap;
}
type ContainerWithStatus = Container & ContainerStatus;
const nanos = (ms: number): string => (ms === 0 ? "0" : `${ms}000000`);

/** Sandboxes and containers that a test creates. List and status calls return them, and every call is recorded. */
export class PodsOfFake {
  /** Each call's method, and the id in its request. */
  readonly asked: [CriMethod, string][] = [];
  /** Maps an id or a method to the code of its fault. */
  readonly faults = new Map<string, string>();
  /** Runs before each status is returned. */
  before: (() => void) | undefined;
  private sandboxes: SandboxStatus[] = [];
  private containers: ContainerWithStatus[] = [];

  readonly connection: Connection = {
    ...fakeConnection({}),
    call: async (method, request) => {
      const { podSandboxId, containerId } = request as { podSandboxId?: string; containerId?: string };
      const id = podSandboxId ?? containerId ?? "";
      this.asked.push([method, id]);
      const code = this.faults.get(id) ?? this.faults.get(method);
      if (code !== undefined) return err({ call: method, code, message: "words" });
      return ok(this.answer(method, id) as never);
    },
  };

  sandbox(id: string, { uid, name = uid, createdAt, attempt = 0, state = "SANDBOX_READY", ips }: FakeSandbox): void {
    const [ip, ...more] = ips ?? [""];
    this.drop(id);
    this.sandboxes.push({
      id,
      metadata: { name, uid, namespace: "default", attempt },
      state,
      createdAt: nanos(createdAt),
      labels: {},
      annotations: {},
      network: { ip: ip ?? "", additionalIps: more.map((one) => ({ ip: one })) },
    });
  }

  container(id: string, given: FakeContainer): void {
    const { sandbox, createdAt, attempt = 0, state = "CONTAINER_RUNNING", exitCode = 0, reason = "" } = given;
    this.drop(id);
    this.containers.push({
      ...criContainer(id, { podSandboxId: sandbox, metadata: { name: "app", attempt }, state }),
      imageRef: "registry/app@sha256:ref",
      imageId: "sha256:app",
      createdAt: nanos(createdAt),
      startedAt: nanos(state === "CONTAINER_CREATED" ? 0 : createdAt + 100),
      finishedAt: nanos(state === "CONTAINER_EXITED" ? createdAt + 200 : 0),
      exitCode,
      reason,
      message: "",
      mounts: [],
      logPath: `/logs/${id}`,
      labels: given.labels ?? {},
      annotations: { note: id },
    });
  }

  /** Adds pods u0, u1 ... with sandboxes s0 ... and running containers c0-0, c0-1 ... */
  fill(pods: number, containersOfEach: number): void {
    for (let pod = 0; pod < pods; pod++) {
      this.sandbox(`s${pod}`, { uid: `u${pod}`, name: `pod-${pod}`, createdAt: 1 });
      for (let i = 0; i < containersOfEach; i++)
        this.container(`c${pod}-${i}`, { sandbox: `s${pod}`, createdAt: 2 + i });
    }
  }

  drop(...ids: readonly string[]): void {
    this.sandboxes = this.sandboxes.filter(({ id }) => !ids.includes(id));
    this.containers = this.containers.filter(({ id }) => !ids.includes(id));
  }

  /** Changes the order of the lists: a runtime's lists are unordered. */
  shuffle(): void {
    this.sandboxes.reverse();
    this.containers.reverse();
  }

  private answer(method: CriMethod, id: string): unknown {
    // a list contains what exists at the moment of the call
    if (method === "ListPodSandbox") return { items: [...this.sandboxes] };
    if (method === "ListContainers") return { containers: [...this.containers] };
    this.before?.();
    const all: readonly (SandboxStatus | ContainerWithStatus)[] =
      method === "PodSandboxStatus" ? this.sandboxes : this.containers;
    return { status: all.find((one) => one.id === id) ?? null };
  }
}
