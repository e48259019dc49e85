import { createServer, type Socket } from "node:net";
import { join } from "node:path";
import { afterEach } from "vitest";
import type { Connection } from "../../../actuator/containerd/connection.ts";
import type { Blob, Container, CriMethod, Image } from "../../../actuator/containerd/messages.ts";
import { err, ok } from "../../../api/base/result.ts";
import { type Meddling, startMeddler } from "../../e2e/containerd/meddler.ts";
import { scratchFolder } from "../../kit/scratch.ts";

type Answers = Partial<Record<CriMethod, unknown>>;

/** Answers by method: a value, or a function of the request. A method that is absent is UNIMPLEMENTED. */
export function fakeConnection(answers: Answers, blobs?: readonly Blob[]): Connection & { readonly asked: string[] } {
  const asked: string[] = [];
  const missing = (call: string) => err({ call, code: "UNIMPLEMENTED", message: "not of this fake" });
  return {
    asked,
    timeoutMs: 1000,
    call: async (method, request) => {
      asked.push(method);
      const answer = answers[method];
      if (answer === undefined) return missing(method);
      return ok(typeof answer === "function" ? answer(request) : answer);
    },
    blobs: async () => (blobs === undefined ? missing("Content/List") : ok(blobs)),
    close() {},
  };
}

/** A directory for each test, and the servers that listen in it. */
export function sockets() {
  const closing: (() => void | Promise<void>)[] = [];
  afterEach(async () => {
    for (const close of closing.splice(0)) await close();
  });
  return {
    dir: scratchFolder,
    /** Serves gRPC with the answers of a table. */
    async serve(answers: Answers, meddling: Meddling = {}, blobs?: readonly Blob[]): Promise<string> {
      const server = await startMeddler(scratchFolder(), fakeConnection(answers, blobs), () => meddling);
      closing.unshift(server.close);
      return server.endpoint;
    },
    /** Listens on a plain socket that does not speak gRPC. */
    async listen(onConnection: (socket: Socket) => void): Promise<string> {
      const path = join(scratchFolder(), "plain.sock");
      const open = new Set<Socket>();
      const server = createServer((socket) => {
        open.add(socket.on("error", () => undefined));
        onConnection(socket);
      });
      await new Promise<void>((done) => server.listen(path, done));
      closing.unshift(() => {
        for (const socket of open) socket.destroy();
        return new Promise<void>((done) => void server.close(() => done()));
      });
      return path;
    },
  };
}

export const criImage = (id: string, more: Partial<Image> = {}): Image => ({
  id,
  repoTags: [],
  repoDigests: [],
  size: "1",
  uid: null,
  username: "",
  spec: null,
  pinned: false,
  ...more,
});
export const criContainer = (id: string, more: Partial<Container> = {}): Container => ({
  id,
  podSandboxId: "sandbox",
  metadata: { name: "app", attempt: 0 },
  image: { image: "registry/app:1", runtimeHandler: "" },
  imageRef: "sha256:app",
  imageId: "",
  state: "CONTAINER_EXITED",
  createdAt: "1700000000000000000",
  labels: {},
  annotations: {},
  ...more,
});
/** A runtime without sandboxes, containers and images. */
export const EMPTY: Answers = {
  Version: { runtimeName: "containerd", runtimeVersion: "v2.1.4" },
  Status: { info: {} },
  ListImages: { images: [] },
  ListContainers: { containers: [] },
  ListPodSandbox: { items: [] },
  ImageFsInfo: { imageFilesystems: [], containerFilesystems: [] },
};
