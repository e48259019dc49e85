import { socketIdentity } from "../grpc/socket-path.ts";

const FIRST_MS = 1_000;
const LONGEST_MS = 60_000;

interface Known {
  readonly path: string;
  /** The socket as it was when the plugin registered. */
  readonly identity: string | undefined;
  readonly connectedAt: number;
  /** Before the next try, ms. */
  delayMs: number;
  timer?: NodeJS.Timeout;
}

/**
 * Brings back plugins whose stream ended while they live on: the same socket, not another at its path, since that one may
 * be a plugin of another resource, and registers itself. The kubelet waits for the plugin to register anew.
 */
export class Reconnects {
  readonly #known = new Map<string, Known>();
  readonly #connect: (resource: string, path: string) => Promise<boolean>;

  constructor(connect: (resource: string, path: string) => Promise<boolean>) {
    this.#connect = connect;
  }

  connected(resource: string, path: string): void {
    const before = this.#known.get(resource);
    clearTimeout(before?.timer);
    const identity = socketIdentity(path);
    const isSame = before?.path === path && before.identity === identity;
    const delayMs = isSame ? before.delayMs : FIRST_MS;
    this.#known.set(resource, { path, identity, connectedAt: performance.now(), delayMs });
  }

  lost(resource: string): void {
    const known = this.#known.get(resource);
    if (known === undefined) return;
    // one that ends each of its streams at once is asked less and less often
    if (performance.now() - known.connectedAt > LONGEST_MS) known.delayMs = FIRST_MS;
    this.#retry(resource, known);
  }

  forget(resource: string): void {
    clearTimeout(this.#known.get(resource)?.timer);
    this.#known.delete(resource);
  }
  close(): void {
    for (const resource of [...this.#known.keys()]) this.forget(resource);
  }

  #retry(resource: string, known: Known): void {
    clearTimeout(known.timer);
    const { path, identity, delayMs } = known;
    known.delayMs = Math.min(delayMs * 2, LONGEST_MS);
    const attempt = async (): Promise<void> => {
      if (identity === undefined || socketIdentity(path) !== identity) return;
      const isBack = await this.#connect(resource, path);
      if (!isBack && this.#known.get(resource) === known) this.#retry(resource, known);
    };
    known.timer = setTimeout(() => void attempt(), delayMs).unref();
  }
}
