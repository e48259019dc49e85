import { err, ok, type Result } from "../../api/model/result.ts";

const SCHEME = "unix://";
/** What fits in a sockaddr_un with its closing zero. */
const LONGEST = 107;

/** The socket's path of `unix:///run/containerd/containerd.sock`, or of that path alone. The error is a sentence. */
export function socketPathOf(endpoint: string): Result<string, string> {
  const path = endpoint.startsWith(SCHEME) ? endpoint.slice(SCHEME.length) : endpoint;
  const bad = (why: string): Result<never, string> => err(`runtime endpoint \`${endpoint}\`: ${why}`);
  if (/^[a-z][a-z0-9+.-]*:/i.test(path)) return bad("only unix sockets are spoken to: unix:///path/of/the.sock");
  if (!path.startsWith("/")) return bad("must be a path from `/`, such as unix:///run/containerd/containerd.sock");
  if (/\p{Cc}/u.test(path)) return bad("must not hold control characters");
  const bytes = Buffer.byteLength(path);
  return bytes > LONGEST ? bad(`a socket's path has at most ${LONGEST} bytes, this has ${bytes}`) : ok(path);
}
