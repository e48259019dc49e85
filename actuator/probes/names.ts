import { isIP } from "node:net";
import { networkInterfaces } from "node:os";
import { ok, type Result } from "../../api/model/result.ts";
import { hostKey, parseHosts, parseResolvConf, ReadFile, type ResolvConf } from "./names-files.ts";
import { NameQuery } from "./names-query.ts";

type Found = Result<readonly string[], string>;
export interface NamesPorts {
  /** Files of this machine. */
  readonly hosts: string;
  readonly resolvConf: string;
  /** Of every name server. */
  readonly port: number;
}
/** No attempt waits longer for a name, and who asks then begins anew. */
const LONGEST_MS = 30_000;
const LOCALHOST = ["::1", "127.0.0.1"];

/**
 * The addresses of hosts that probes name: those of /etc/hosts, then those of the name servers. Sources that
 * nsswitch.conf may name besides these two are not asked. Probes that ask for the same name ask once.
 */
export class Names {
  readonly #hosts: ReadFile<ReadonlyMap<string, readonly string[]>>;
  readonly #conf: ReadFile<ResolvConf>;
  readonly #port: number;
  readonly #asked = new Map<string, Promise<Found>>();
  #query: { readonly conf: ResolvConf; readonly query: NameQuery } | undefined;

  constructor({ hosts, resolvConf, port }: NamesPorts) {
    this.#hosts = new ReadFile(hosts, parseHosts);
    this.#conf = new ReadFile(resolvConf, parseResolvConf);
    this.#port = port;
  }

  /** An address is its own, and what the file knows is found at once. Error: Go's words. */
  addressesOf(host: string): Found | Promise<Found> {
    if (isIP(host.replace(/%.*$/, "")) !== 0) return ok([host]);
    const key = hostKey(host);
    const filed = this.#hosts.get().get(key) ?? (key === "localhost" ? LOCALHOST : undefined);
    if (filed !== undefined) return ok(inOrder(filed));
    const asked = this.#asked.get(host);
    if (asked !== undefined) return asked;
    const found = this.#ask(host).finally(() => this.#asked.delete(host));
    this.#asked.set(host, found);
    return found;
  }

  /** Whether the name servers have said nothing of it yet. */
  isAsking(host: string): boolean {
    return this.#asked.has(host);
  }

  async #ask(host: string): Promise<Found> {
    const conf = this.#conf.get();
    if (this.#query?.conf !== conf) this.#query = { conf, query: new NameQuery(conf, this.#port) };
    const endMs = performance.now() + LONGEST_MS;
    const found = await this.#query.query.ask(host, () => performance.now() < endMs);
    return found.ok ? ok(inOrder(found.value)) : found;
  }
}
export const systemNames = new Names({ hosts: "/etc/hosts", resolvConf: "/etc/resolv.conf", port: 53 });

/** IPv6 first where this machine has an address to come from. RFC 6724, 6, as far as it decides here. */
function inOrder(addresses: readonly string[]): readonly string[] {
  const six = addresses.filter((address) => isIP(address.replace(/%.*$/, "")) === 6);
  if (six.length === 0 || six.length === addresses.length) return addresses;
  const own = Object.values(networkInterfaces()).flatMap((list) => list ?? []);
  const isUsable = (address: string): boolean =>
    own.some(
      ({ family, internal, address: from }) =>
        family === "IPv6" && (address === "::1" ? internal : !internal && !from.startsWith("fe80:")),
    );
  const usable = six.filter(isUsable);
  const unusable = six.filter((address) => !isUsable(address));
  return [...usable, ...addresses.filter((address) => !six.includes(address)), ...unusable];
}
