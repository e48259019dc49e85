import { join } from "node:path";
import { Server, ServerCredentials, type ServerUnaryCall, type sendUnaryData, status } from "@grpc/grpc-js";
import { loadSync, type ServiceDefinition } from "@grpc/proto-loader";
import type { RuntimeFault } from "../../actuator/containerd/cri.ts";
import type { Result } from "../../api/base/result.ts";
import type { FakeRuntime } from "./fake-runtime.ts";

const PROTO = join(import.meta.dirname, "../../actuator/containerd/runtime.proto");
type Fields = Readonly<Record<string, unknown>>;
/** The response of a CRI method; null: NOT_FOUND. */
type Method = (request: Fields) => Promise<object | null>;

/** Serves a runtime in memory as CRI v1 on a Unix socket, for tests whose client is another process. */
export async function serveCri(runtime: FakeRuntime, socketPath: string): Promise<{ close(): void }> {
  const loaded = loadSync(PROTO, { longs: String, enums: String, defaults: true });
  const methods = methodsOf(runtime);
  const server = new Server();
  for (const name of ["runtime.v1.RuntimeService", "runtime.v1.ImageService"]) {
    const service = loaded[name] as ServiceDefinition;
    server.addService(
      service,
      Object.fromEntries(Object.keys(service).map((method) => [method, handlerOf(methods[method])])),
    );
  }
  await new Promise<void>((resolve, reject) =>
    server.bindAsync(`unix://${socketPath}`, ServerCredentials.createInsecure(), (e) => (e ? reject(e) : resolve())),
  );
  return { close: () => server.forceShutdown() };
}

const handlerOf =
  (method: Method | undefined) =>
  ({ request }: ServerUnaryCall<Fields, object>, answer: sendUnaryData<object>): void => {
    const answered = method?.(request) ?? Promise.reject(new Error("not of this fake"));
    answered.then(
      (value) => (value === null ? answer({ code: status.NOT_FOUND, details: "not found" }) : answer(null, value)),
      (e: Error) => answer({ code: status.UNKNOWN, details: e.message }),
    );
  };

async function value<T>(answered: Promise<Result<T, RuntimeFault>>): Promise<T> {
  const answer = await answered;
  if (!answer.ok) throw new Error(answer.error.message);
  return answer.value;
}

function methodsOf(runtime: FakeRuntime): Readonly<Record<string, Method>> {
  const list = () => value(runtime.list());
  const idOf = (request: Fields, key: string): string => String(request[key]);
  const imageOf = ({ image }: Fields): string => String((image as Fields)["image"]);
  const done = async (answered: Promise<Result<null, RuntimeFault>>): Promise<object> => {
    await value(answered);
    return {};
  };
  return {
    Version: async () => ({
      version: "0.1.0",
      runtimeName: "containerd",
      runtimeVersion: "1.7.0",
      runtimeApiVersion: "v1",
    }),
    Status: async () => ({ status: {}, info: {} }),
    ListImages: async () => ({ images: (await list())["images"] }),
    ListContainers: async ({ filter }) => {
      const containers = (await list())["containers"] as readonly { readonly id: string }[];
      const id = (filter as Fields | null)?.["id"];
      return { containers: containers.filter((one) => id === undefined || id === "" || one.id === id) };
    },
    ListPodSandbox: async () => ({ items: (await list())["sandboxes"] }),
    ImageFsInfo: async () => (await list())["imageFilesystems"] as object,
    ImageStatus: async (request) => {
      const now = await value(runtime.imageNow(imageOf(request)));
      return { image: now && { id: now.id, pinned: now.pinned, size: String(now.sizeBytes) } };
    },
    ContainerStatus: async (request) => {
      const now = await value(runtime.containerNow(idOf(request, "containerId")));
      return (
        now && {
          status: { ...now, imageId: now.imageId ?? "", imageRef: now.imageRef ?? "", logPath: now.logPath ?? "" },
        }
      );
    },
    PodSandboxStatus: async (request) => {
      const now = await value(runtime.sandboxNow(idOf(request, "podSandboxId")));
      return now && { status: now };
    },
    RemoveImage: (request) => done(runtime.removeImage(imageOf(request))),
    StopContainer: (request) => done(runtime.stopContainer(idOf(request, "containerId"))),
    RemoveContainer: (request) => done(runtime.removeContainer(idOf(request, "containerId"))),
    StopPodSandbox: (request) => done(runtime.stopSandbox(idOf(request, "podSandboxId"))),
    RemovePodSandbox: (request) => done(runtime.removeSandbox(idOf(request, "podSandboxId"))),
  };
}
