import { once } from "node:events";
import { readFileSync } from "node:fs";
import { createServer, type Server } from "node:https";
import { type AddressInfo, createServer as createTcpServer, type Server as TcpServer } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { capturedText, realNode } from "../../kit/real-node.ts";
import type { ControlPlane } from "./control-plane.ts";

/** The time that the kubelet of a node with several hundred containers needs for its statistics. */
const ANSWER_MS = 30;

/**
 * Servers at a cluster's address that answer as the kubelets of its nodes, with recorded answers of a real kubelet. One
 * of the servers accepts connections and never answers.
 */
export class KubeletServers {
  readonly #server: Server;
  readonly #hanging: TcpServer;
  #open = 0;
  /** The maximum number of concurrent requests. */
  peak = 0;
  /** The number of all requests so far. */
  asked = 0;

  private constructor(plane: ControlPlane) {
    const { cert, key } = plane.certificate("kubelets", { subject: "/CN=kubelets", names: [`IP:${plane.address}`] });
    const answers: Readonly<Record<string, Buffer>> = {
      "/configz": readFileSync(realNode("configz.json")),
      // without the node's name, because all nodes get the same statistics
      "/stats/summary": Buffer.from(capturedText("stats-summary.json").replace('"nodeName":"n1",', "")),
    };
    this.#server = createServer({ cert: readFileSync(cert), key: readFileSync(key) }, async (request, response) => {
      this.asked++;
      this.peak = Math.max(this.peak, ++this.#open);
      await sleep(ANSWER_MS);
      // a client may send its next request before this handler continues
      this.#open--;
      const answer = answers[request.url ?? ""];
      response.writeHead(answer === undefined ? 404 : 200, { "content-type": "application/json" }).end(answer);
    });
    this.#hanging = createTcpServer((socket) => socket.on("error", () => undefined).resume());
  }

  static async start(plane: ControlPlane): Promise<KubeletServers> {
    const servers = new KubeletServers(plane);
    for (const server of [servers.#server, servers.#hanging]) {
      server.listen(0, plane.address);
      await once(server, "listening");
    }
    return servers;
  }
  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }
  get hangingPort(): number {
    return (this.#hanging.address() as AddressInfo).port;
  }
  stop(): void {
    this.#server.closeAllConnections();
    this.#server.close();
    this.#hanging.close();
  }
}
