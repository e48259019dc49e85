import { spawn } from "node:child_process";
import { once } from "node:events";

/** Binds, listens with the shortest queue, fills it, and takes nobody: whoever comes next hears nothing. */
const SCRIPT = `
import socket, sys
listener = socket.socket()
listener.bind(("127.0.0.1", 0))
listener.listen(0)
held = []
for _ in range(8):
    one = socket.socket()
    one.setblocking(False)
    one.connect_ex(listener.getsockname())
    held.append(one)
print(listener.getsockname()[1], flush=True)
sys.stdin.read()
`;

/** A port where a connection hangs before it is one. Ours is never busy: node takes every connection. */
export async function fullListener(): Promise<AsyncDisposable & { readonly port: number }> {
  const child = spawn("python3", ["-c", SCRIPT], { stdio: ["pipe", "pipe", "inherit"] });
  const [line] = (await once(child.stdout, "data")) as [Buffer];
  return {
    port: Number(line.toString()),
    async [Symbol.asyncDispose]() {
      child.stdin.end();
      await once(child, "close");
    },
  };
}
