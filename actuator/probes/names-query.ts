import { Resolver } from "node:dns";
import { hostPort } from "../../api/decide/probes/http-request.ts";
import { err, ok, type Result } from "../../api/model/result.ts";
import type { ResolvConf } from "./names-files.ts";

/** A server that was silent for so long is asked again; Go asks anew at the next attempt of the probe. */
const AGAIN_MS = 1000;
type Kind = "resolve4" | "resolve6";
type Asked = Result<readonly string[], string>;

/**
 * Asks name servers as the kubelet's resolver does, and never keeps a thread busy with it: no name waits for another.
 * Go 1.26: net, Resolver.goLookupIPCNAMEOrder.
 */
export class NameQuery {
  readonly #conf: ResolvConf;
  readonly #port: number;
  readonly #resolvers = new Map<string, Resolver>();

  constructor(conf: ResolvConf, port: number) {
    this.#conf = conf;
    this.#port = port;
  }

  /** IPv4 first. Error: Go's words. `isWanted`: whether it is to go on with the next question. */
  async ask(host: string, isWanted: () => boolean): Promise<Asked> {
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

  /** Go 1.26: net, Resolver.tryOneName. Error: what stands behind the name. */
  async #tryName(name: string, kind: Kind, isWanted: () => boolean): Promise<Asked> {
    let last = ": no such host";
    for (let i = 0; i < this.#conf.attempts; i++) {
      for (const server of this.#conf.servers) {
        if (!isWanted()) return err(last);
        const answer = await this.#exchange(server, name, kind);
        if (typeof answer !== "string") return ok(answer);
        const isUnknown = answer === "ENOTFOUND" || answer === "ENODATA";
        last = ` on ${hostPort(server, this.#port)}: ${isUnknown ? "no such host" : (WORDS[answer] ?? "server misbehaving")}`;
        // another server would say the same
        if (isUnknown) return err(last);
      }
    }
    return err(last);
  }
  /** Addresses, or the code of an error. */
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
