import { lookup } from "node:dns";
import { isIP } from "node:net";
import { err, ok, type Result } from "../../api/model/result.ts";

type Found = Result<readonly string[], string>;

/** Each may hold a thread of the process for as long as a name server says nothing, and the files need threads too. */
const AT_ONCE = 2;
const asked = new Map<string, Promise<Found>>();
const waiting: (() => void)[] = [];
let busy = 0;

/**
 * The addresses of a host that a probe names; an address is its own, and no host this machine. Probes that ask for the
 * same name ask once. Error: Go's words.
 */
export function addressesOf(host: string): Found | Promise<Found> {
  if (isIP(host.replace(/%.*$/, "")) !== 0) return ok([host]);
  const known = asked.get(host);
  if (known !== undefined) return known;
  const found = look(host).finally(() => asked.delete(host));
  asked.set(host, found);
  return found;
}

async function look(host: string): Promise<Found> {
  if (busy < AT_ONCE) busy++;
  else await new Promise<void>((resolve) => waiting.push(resolve));
  const found = await new Promise<Found>((resolve) => {
    lookup(host, { all: true }, (error, addresses) => {
      if (error === null) resolve(ok(addresses.map(({ address }) => address)));
      else resolve(err(`lookup ${host}: ${WORDS[error.code ?? ""] ?? error.code}`));
    });
  });
  // a turn is handed on, not given back
  const next = waiting.shift();
  if (next === undefined) busy--;
  else next();
  return found;
}
const WORDS: Readonly<Record<string, string>> = {
  ENOTFOUND: "no such host",
  ENODATA: "no such host",
  EAI_AGAIN: "server misbehaving",
};
