import { readFileSync, statSync } from "node:fs";
import { isIP } from "node:net";
import { hostname } from "node:os";

/** As long as Go believes what it read. Go 1.26: net, cacheMaxAge. */
const BELIEVED_MS = 5000;

/** What stands in a small file, read again when that was changed; one that is not there is empty. */
export class ReadFile<T> {
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

/** Names in small letters without a dot behind them -> their addresses, in the file's order. */
export type Hosts = ReadonlyMap<string, readonly string[]>;
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
export const hostKey = (name: string): string => (name.endsWith(".") ? name.slice(0, -1) : name).toLowerCase();

/** Where names are asked for. */
export interface ResolvConf {
  /** Addresses, three at most. */
  readonly servers: readonly string[];
  readonly search: readonly string[];
  readonly ndots: number;
  /** Of one question to one server. */
  readonly timeoutMs: number;
  readonly attempts: number;
}
const MOST_SERVERS = 3;
/** resolv.conf(5); Go 1.26: net, dnsReadConfig. */
export function parseResolvConf(text: string): ResolvConf {
  const lines = text.split("\n").map(words);
  const rest = (key: string) => lines.filter(([first]) => first === key).map((line) => line.slice(1));
  const servers = rest("nameserver").flatMap(([server = ""]) => (isIP(server) === 0 ? [] : [server]));
  const searched = lines.findLast(([key]) => key === "search" || key === "domain");
  const search = searched?.[0] === "domain" ? searched.slice(1, 2) : (searched?.slice(1) ?? []);
  const options = rest("options").flat();
  return {
    servers: servers.length === 0 ? ["127.0.0.1", "::1"] : servers.slice(0, MOST_SERVERS),
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
