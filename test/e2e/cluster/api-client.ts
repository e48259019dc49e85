import { Agent, type RequestOptions, request } from "node:https";
import { text } from "node:stream/consumers";

/** How a client authenticates. */
export type Credentials = { readonly cert: Buffer; readonly key: Buffer } | { readonly token: string };

export interface Answer {
  readonly status: number;
  readonly body: string;
  /** The server's warnings about a request that it accepts. */
  readonly warnings: readonly string[];
}
export type Verb = "GET" | "POST" | "PUT" | "PATCH" | "DELETE";

/** A client for API servers and kubelets that is independent of the client under test. */
export class ApiClient {
  readonly url: string;
  readonly #options: RequestOptions;
  readonly #token: string | undefined;
  readonly #agent = new Agent({ keepAlive: true, maxSockets: 32 });

  constructor(url: string, ca: Buffer, credentials: Credentials) {
    this.url = url;
    this.#token = "token" in credentials ? credentials.token : undefined;
    this.#options = { ca, agent: this.#agent, ...("cert" in credentials ? credentials : {}) };
  }
  close(): void {
    this.#agent.destroy();
  }

  async ask(verb: Verb, path: string, body?: object, contentType = "application/json"): Promise<Answer> {
    const sent = body === undefined ? undefined : Buffer.from(JSON.stringify(body));
    const headers = {
      accept: "application/json",
      ...(this.#token === undefined ? {} : { authorization: `Bearer ${this.#token}` }),
      // otherwise Node sends no content-length with a DELETE, and the server would read the body as the next request
      ...(sent === undefined ? {} : { "content-type": contentType, "content-length": sent.length }),
    };
    const { promise, resolve, reject } = Promise.withResolvers<Answer>();
    const asked = request(new URL(path, this.url), { ...this.#options, method: verb, headers }, (response) => {
      const { statusCode: status = 0, headersDistinct } = response;
      const { warning: warnings = [] } = headersDistinct;
      text(response).then((body) => resolve({ status, body, warnings }), reject);
    });
    asked.on("error", reject).end(sent);
    return promise;
  }

  /** The object in the response; throws the server's message if it refuses the request. */
  async must<T = unknown>(verb: Verb, path: string, body?: object, contentType?: string): Promise<T> {
    const answer = await this.ask(verb, path, body, contentType);
    if (answer.status >= 300) throw new Error(`${verb} ${path}: ${answer.status} ${answer.body.slice(0, 1000)}`);
    return JSON.parse(answer.body) as T;
  }
  get<T = unknown>(path: string): Promise<T> {
    return this.must<T>("GET", path);
  }
}
