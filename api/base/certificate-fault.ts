/** Codes of Node.js and OpenSSL for a certificate that no known authority has signed. */
const UNKNOWN_AUTHORITY: ReadonlySet<string> = new Set([
  "DEPTH_ZERO_SELF_SIGNED_CERT",
  "SELF_SIGNED_CERT_IN_CHAIN",
  "UNABLE_TO_VERIFY_LEAF_SIGNATURE",
  "UNABLE_TO_GET_ISSUER_CERT",
  "UNABLE_TO_GET_ISSUER_CERT_LOCALLY",
]);

/**
 * The fault of a server's certificate, and what to do; undefined: the error's code is about something else. `authority`:
 * the advice for a certificate whose authority is unknown.
 */
export function certificateFault(fault: unknown, authority: string): string | undefined {
  const { code = "", cert } = (fault ?? {}) as { readonly code?: string; readonly cert?: { subjectaltname?: string } };
  if (UNKNOWN_AUTHORITY.has(code))
    return `its certificate is self-signed, or of an authority that is not known (${code}): ${authority}`;
  if (code === "ERR_TLS_CERT_ALTNAME_INVALID")
    return `its certificate is for ${cert?.subjectaltname ?? "other names"} and not for this address: ask by what it is for`;
  if (code === "CERT_HAS_EXPIRED" || code === "CERT_NOT_YET_VALID")
    return `its certificate is not valid at this moment (${code}): check this machine's clock, and renew the certificate`;
  return undefined;
}

/**
 * The fault of the API's certificate as its own clients report it, and what to do; undefined: the error is about
 * something else.
 */
export const apiCertificateFault = (fault: unknown): string | undefined =>
  certificateFault(fault, "name the authority's certificate in the environment, NODE_EXTRA_CA_CERTS=FILE");

/** Why an API gave no answer: the error of a `fetch`, and what else there is to do about it. */
export function unansweredText(api: string, error: unknown, advice = ""): string {
  const { cause, message } = error as { cause?: { code?: string; message?: string }; message: string };
  const certificate = apiCertificateFault(cause);
  if (certificate !== undefined) return `${api}: ${certificate}`;
  return `${api} does not answer (${cause?.code ?? cause?.message ?? message})${advice}`;
}
