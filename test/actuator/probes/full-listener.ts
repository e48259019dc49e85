import { spawn } from "node:child_process";
import { once } from "node:events";
import { connect } from "node:net";

const SCRIPT = `
const server = require("node:net").createServer();
server.listen({ host: "127.0.0.1", port: 0, backlog: 1 }, () => console.log(server.address().port));
`;
/** More connections than the server's queue holds. */
const FILL = 8;

/** A port where connection attempts hang: the server process is stopped, and its queue is full. */
export async function fullListener(): Promise<AsyncDisposable & { readonly port: number }> {
  const child = spawn(process.execPath, ["-e", SCRIPT], { stdio: ["ignore", "pipe", "inherit"] });
  const [line] = (await once(child.stdout, "data")) as [Buffer];
  const port = Number(line.toString());
  child.kill("SIGSTOP");
  const held = Array.from({ length: FILL }, () => connect(port, "127.0.0.1").on("error", () => {}));
  // the connections that fit are established; the others wait, as any later one will
  await once(held[0] as (typeof held)[0], "connect");
  return {
    port,
    async [Symbol.asyncDispose]() {
      for (const socket of held) socket.destroy();
      child.kill("SIGKILL");
      await once(child, "close");
    },
  };
}
