import { Resolver } from "node:dns";
import { readFileSync, statSync } from "node:fs";
import { isIP } from "node:net";
import { hostname, networkInterfaces } from "node:os";
import { err, ok, type Result } from "../../../api/base/result.ts";
import { hostPort } from "../../../api/decide/probes/http-request.ts";

/** How long Go uses what it read before it checks the file again. Go 1.26: net, cacheMaxAge. */
const BELIEVED_MS = 5000;

/** The parsed content of a small file, read again after a change; a missing file counts as empty. */
class CachedFile<T> {
  readonly #path: string;
  readonly #parse: (text: string) => T;
  #known: { readonly value: T; readonly version: string } | undefined;
  #freshUntilMs = 0;

  constructor(path: string, parse: (text: string) => T) {
    this.#path = path;
    this.#parse = parse;
  }
  get(): T {
    const now = performance.now();
    if (this.#known !== undefined && now < this.#freshUntilMs) return this.#known.value;
    const version = this.#version();
    if (this.#known?.version !== version) this.#known = { value: this.#parse(this.#text()), version };
    this.#freshUntilMs = now + BELIEVED_MS;
    return this.#known.value;
  }
  #version(): string {
    const stat = statSync(this.#path, { throwIfNoEntry: false });
    return stat === undefined ? "" : `${stat.ino} ${stat.size} ${stat.mtimeMs}`;
  }
  #text(): string {
    try {
      return readFileSync(this.#path, "utf8");
    } catch {
      return "";
    }
  }
}

/** Lower-case names without a trailing dot -> addresses, in the file's order. */
type Hosts = ReadonlyMap<string, readonly string[]>;
/** hosts(5); Go 1.26: net, readHosts. */
export function parseHosts(text: string): Hosts {
  const hosts = new Map<string, string[]>();
  for (const line of text.split("\n")) {
    const [address = "", ...names] = words(line.split("#", 1)[0] as string);
    if (isIP(address.split("%", 1)[0] as string) === 0) continue;
    for (const name of names.map(hostKey)) {
      const known = hosts.get(name);
      if (known === undefined) hosts.set(name, [address]);
      else known.push(address);
    }
  }
  return hosts;
}
const hostKey = (name: string): string => (name.endsWith(".") ? name.slice(0, -1) : name).toLowerCase();

/** The name servers, and how to query them. */
interface ResolvConf {
  /** Addresses, at most three. */
  readonly servers: readonly string[];
  readonly search: readonly string[];
  readonly ndots: number;
  /** Timeout of one query to one server. */
  readonly timeoutMs: number;
  readonly attempts: number;
}
const MAX_SERVERS = 3;
/** resolv.conf(5); Go 1.26: net, dnsReadConfig. */
export function parseResolvConf(text: string): ResolvConf {
  const lines = text.split("\n").map(words);
  const rest = (key: string) => lines.filter(([first]) => first === key).map((line) => line.slice(1));
  const servers = rest("nameserver").flatMap(([server = ""]) => (isIP(server) === 0 ? [] : [server]));
  const searched = lines.findLast(([key]) => key === "search" || key === "domain");
  const search = searched?.[0] === "domain" ? searched.slice(1, 2) : (searched?.slice(1) ?? []);
  const options = rest("options").flat();
  return {
    servers: servers.length === 0 ? ["127.0.0.1", "::1"] : servers.slice(0, MAX_SERVERS),
    search: search.length === 0 ? ownDomain() : search.filter((name) => name !== "."),
    ndots: numberIn(options, "ndots", 0, 15) ?? 1,
    timeoutMs: (numberIn(options, "timeout", 1, 30) ?? 5) * 1000,
    attempts: numberIn(options, "attempts", 1, 5) ?? 2,
  };
}
const words = (line: string): string[] => line.split(/[ \t\r]/).filter((word) => word !== "");
function numberIn(options: readonly string[], key: string, least: number, most: number): number | undefined {
  const given = options.findLast((option) => option.startsWith(`${key}:`))?.slice(key.length + 1);
  if (given === undefined || !/^\d+$/.test(given)) return undefined;
  return Math.min(Math.max(Number(given), least), most);
}
function ownDomain(): string[] {
  const [, domain = ""] = /\.(.+)$/.exec(hostname()) ?? [];
  return domain === "" ? [] : [domain];
}

/** The time after which a silent server is queried again; Go queries again at the probe's next attempt. */
const AGAIN_MS = 1000;
type Kind = "resolve4" | "resolve6";
type LookupResult = Result<readonly string[], string>;

/**
 * Queries name servers as the kubelet's resolver does, without blocking a thread: names do not wait for one another.
 * Go 1.26: net, Resolver.goLookupIPCNAMEOrder.
 */
class NameQuery {
  readonly #conf: ResolvConf;
  readonly #port: number;
  readonly #resolvers = new Map<string, Resolver>();

  constructor(conf: ResolvConf, port: number) {
    this.#conf = conf;
    this.#port = port;
  }

  /** Returns IPv4 addresses first. Error: Go's words. `isWanted`: whether to continue with the next query. */
  async ask(host: string, isWanted: () => boolean): Promise<LookupResult> {
    if (!isDomainName(host)) return err(`lookup ${host}: no such host`);
    let last: string | undefined;
    for (const name of this.#names(host)) {
      if (!isWanted()) break;
      const both = await Promise.all([
        this.#tryName(name, "resolve4", isWanted),
        this.#tryName(name, "resolve6", isWanted),
      ]);
      const found = both.flatMap((one) => (one.ok ? one.value : []));
      if (found.length > 0) return ok(found);
      const error = both.find((one) => !one.ok)?.error;
      if (last === undefined || name === host) last = error ?? last;
    }
    return err(`lookup ${host}${last ?? ": no such host"}`);
  }

  /** Go 1.26: net, dnsConfig.nameList. */
  #names(host: string): readonly string[] {
    if (host.endsWith(".")) return [host];
    const { ndots, search } = this.#conf;
    const suffixed = search.map((domain) => `${host}.${domain}`);
    return host.split(".").length - 1 >= ndots ? [host, ...suffixed] : [...suffixed, host];
  }

  /** Go 1.26: net, Resolver.tryOneName. Error: the text that follows the name. */
  async #tryName(name: string, kind: Kind, isWanted: () => boolean): Promise<LookupResult> {
    let last = ": no such host";
    for (let i = 0; i < this.#conf.attempts; i++) {
      for (const server of this.#conf.servers) {
        if (!isWanted()) return err(last);
        const answer = await this.#exchange(server, name, kind);
        if (typeof answer !== "string") return ok(answer);
        const isUnknown = answer === "ENOTFOUND" || answer === "ENODATA";
        last = ` on ${hostPort(server, this.#port)}: ${isUnknown ? "no such host" : (WORDS[answer] ?? "server misbehaving")}`;
        // another server would answer the same
        if (isUnknown) return err(last);
      }
    }
    return err(last);
  }
  /** Returns the addresses, or an error code. */
  #exchange(server: string, name: string, kind: Kind): Promise<readonly string[] | string> {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, this.#conf.timeoutMs, "ETIMEOUT");
      this.#resolver(server)[kind](name, (error, addresses) => {
        clearTimeout(timer);
        resolve(error === null ? addresses : (error.code ?? ""));
      });
    });
  }
  #resolver(server: string): Resolver {
    const known = this.#resolvers.get(server);
    if (known !== undefined) return known;
    const tries = Math.ceil(this.#conf.timeoutMs / AGAIN_MS) + 2;
    const resolver = new Resolver({ timeout: AGAIN_MS, maxTimeout: AGAIN_MS, tries });
    resolver.setServers([hostPort(server, this.#port)]);
    this.#resolvers.set(server, resolver);
    return resolver;
  }
}
const WORDS: Readonly<Record<string, string>> = {
  ETIMEOUT: "i/o timeout",
  ECONNREFUSED: "read: connection refused",
};

/** Go 1.26: net, isDomainName. */
const isDomainName = (name: string): boolean =>
  name.length <= 253 + (name.endsWith(".") ? 1 : 0) &&
  /[A-Za-z_-]/.test(name) &&
  /^([A-Za-z0-9_]([A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?\.)*[A-Za-z0-9_]([A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?\.?$/.test(name);

type AddressResult = Result<readonly string[], string>;
interface NamesDeps {
  /** Path of the hosts file. */
  readonly hosts: string;
  readonly resolvConf: string;
  /** Port of every name server. */
  readonly port: number;
}
/** The limit for a lookup; a later attempt starts a new one. */
const LONGEST_MS = 30_000;
const LOCALHOST = ["::1", "127.0.0.1"];

/**
 * Resolves host names in probes: by /etc/hosts, then by the name servers. Other sources in nsswitch.conf are
 * not used. Concurrent lookups of the same name share one query.
 */
export class HostResolver {
  readonly #hosts: CachedFile<ReadonlyMap<string, readonly string[]>>;
  readonly #conf: CachedFile<ResolvConf>;
  readonly #port: number;
  readonly #asked = new Map<string, Promise<AddressResult>>();
  #query: { readonly conf: ResolvConf; readonly query: NameQuery } | undefined;

  constructor({ hosts, resolvConf, port }: NamesDeps) {
    this.#hosts = new CachedFile(hosts, parseHosts);
    this.#conf = new CachedFile(resolvConf, parseResolvConf);
    this.#port = port;
  }

  /** An address resolves to itself, a name in the hosts file at once. Error: Go's words. */
  addressesOf(host: string): AddressResult | Promise<AddressResult> {
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

  /** Checks that a query for a host is not answered yet. */
  isAsking(host: string): boolean {
    return this.#asked.has(host);
  }

  async #ask(host: string): Promise<AddressResult> {
    const conf = this.#conf.get();
    if (this.#query?.conf !== conf) this.#query = { conf, query: new NameQuery(conf, this.#port) };
    const endMs = performance.now() + LONGEST_MS;
    const found = await this.#query.query.ask(host, () => performance.now() < endMs);
    return found.ok ? ok(inOrder(found.value)) : found;
  }
}
export const systemNames = new HostResolver({ hosts: "/etc/hosts", resolvConf: "/etc/resolv.conf", port: 53 });

/** IPv6 first if this machine has an address to send from. RFC 6724, 6, as far as it matters here. */
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
