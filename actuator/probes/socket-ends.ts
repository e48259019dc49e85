import type { Socket } from "node:net";
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
