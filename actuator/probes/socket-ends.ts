import { Socket } from "node:net";
import { hostPort } from "../../api/decide/probes/http-request.ts";

export interface Ends {
  readonly local: string;
  readonly remote: string;
}
/** Both ends of an open connection as Go prints them; a closed one has forgotten them. */
export function endsOf({ localAddress, localPort, remoteAddress, remotePort }: Socket): Ends {
  return {
    local: hostPort(localAddress ?? "", localPort ?? 0),
    remote: hostPort(remoteAddress ?? "", remotePort ?? 0),
  };
}

/** A socket that is closed has forgotten its own address, which is told in errors only. */
export class TellingSocket extends Socket {
  #local: string | undefined;

  /** Of a connection that broke. */
  get local(): string {
    return this.#local ?? "";
  }
  override _destroy(error: Error | null, callback: (error?: Error | null) => void): void {
    if (error !== null) this.#local = endsOf(this).local;
    super._destroy(error, callback);
  }
}
