import { readFileSync } from "node:fs";
import * as https from "node:https";
import type { Fields } from "../base/own.ts";

/** A token must be valid for this much longer: enough for a request that starts now. */
const AHEAD_MS = 10_000;
/** The timeout for an identity provider. */
const TIMEOUT_SECONDS = 30;

/**
 * The ID token of an `oidc` auth-provider, renewed with its refresh token when it expires. The kubeconfig is not written: if the
 * provider accepts each refresh token only once, the user has to log in again the next time. client-go: auth/oidc.
 */
export class IdToken {
  readonly #provider: Fields;
  #token: string;
  #refreshToken: string;

  constructor(provider: Fields) {
    this.#provider = provider;
    this.#token = textOf(provider["id-token"]);
    this.#refreshToken = textOf(provider["refresh-token"]);
  }

  /** Throws if the provider returns none. */
  async current(): Promise<string> {
    if (endOf(this.#token) - Date.now() > AHEAD_MS) return this.#token;
    const issuer = textOf(this.#provider["idp-issuer-url"]);
    if (issuer === "" || this.#refreshToken === "")
      throw new Error("the ID token has expired, and there is no refresh token");
    // the package is loaded only where it is needed
    const { customFetch, discovery, refreshTokenGrant } = await import("./kube-client.ts");
    const [clientId, secret] = [textOf(this.#provider["client-id"]), textOf(this.#provider["client-secret"])];
    const options = { [customFetch]: fetchWith(authorityOf(this.#provider)), timeout: TIMEOUT_SECONDS };
    const client = await discovery(new URL(issuer), clientId, secret === "" ? undefined : secret, undefined, options);
    const renewed = await refreshTokenGrant(client, this.#refreshToken);
    if (renewed.id_token === undefined) throw new Error(`${issuer} answers without an ID token`);
    this.#token = renewed.id_token;
    this.#refreshToken = renewed.refresh_token ?? this.#refreshToken;
    return this.#token;
  }
}

const textOf = (value: unknown): string => (typeof value === "string" ? value : "");

/** When a token expires, epoch ms; 0 if it does not say. */
function endOf(token: string): number {
  try {
    const claims = JSON.parse(Buffer.from(token.split(".")[1] ?? "", "base64url").toString("utf8")) as {
      exp?: unknown;
    };
    return typeof claims.exp === "number" ? claims.exp * 1000 : 0;
  } catch {
    return 0;
  }
}

function authorityOf(provider: Fields): string | undefined {
  const data = textOf(provider["idp-certificate-authority-data"]);
  if (data !== "") return Buffer.from(data, "base64").toString("utf8");
  const file = textOf(provider["idp-certificate-authority"]);
  return file === "" ? undefined : readFileSync(file, "utf8");
}

type Fetch = (
  url: string,
  options: { readonly method: string; readonly headers: object; readonly body?: unknown },
) => Promise<Response>;
/** A `fetch` that trusts one authority, which the platform's own cannot do. */
const fetchWith =
  (ca: string | undefined): Fetch =>
  (url, { method, headers, body }) =>
    new Promise((resolve, reject) => {
      const request = https.request(url, { method, headers: { ...headers }, ...(ca && { ca }) }, async (answer) => {
        const chunks: Buffer[] = [];
        for await (const chunk of answer as AsyncIterable<Buffer>) chunks.push(chunk);
        const type = answer.headers["content-type"] ?? "";
        resolve(
          new Response(Buffer.concat(chunks), { status: answer.statusCode ?? 500, headers: { "content-type": type } }),
        );
      });
      request.setTimeout(TIMEOUT_SECONDS * 1000, () => request.destroy(new Error("it does not answer in time")));
      request.on("error", reject);
      request.end(body === undefined || body === null ? undefined : String(body));
    });
