import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import type { Gate } from "./gate.ts";

export interface PodsServer {
  readonly url: string;
  /** Sets the pods of all later answers. */
  set(pods: readonly object[]): void;
  close(): Promise<void>;
}

/** Serves a v1.PodList, as an API server does for a node, whenever the gate is open. */
export async function startPodsServer(gate: Gate): Promise<PodsServer> {
  let items: readonly object[] = [];
  const server = createServer(async (_request, response) => {
    await gate.pass();
    response.setHeader("content-type", "application/json");
    response.end(JSON.stringify({ kind: "PodList", apiVersion: "v1", metadata: {}, items }));
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}/api/v1/pods`,
    set: (pods) => {
      items = pods;
    },
    close: async () => {
      const closed = once(server, "close");
      server.close();
      server.closeAllConnections();
      await closed;
    },
  };
}

/** A pod with several container instances of one name. */
export const podOf = (
  name: string,
  uid: string,
  { phase = "Running", namespace = "default" }: { readonly phase?: string; readonly namespace?: string } = {},
): object => ({
  apiVersion: "v1",
  kind: "Pod",
  metadata: { name, namespace, uid },
  spec: { containers: [{ name: "app", image: "app" }] },
  status: { phase },
});
