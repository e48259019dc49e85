/** Passwords in addresses, bearer tokens and the API's own: errors of other parties may repeat them. */
export const redacted = (text: string): string =>
  text
    .replace(/(\b[a-z][a-z0-9+.-]*:\/\/)[^\s/@"'`]+@/gi, "$1***@")
    .replace(/\b(Bearer|Basic)\s+[A-Za-z0-9._~+/=-]+/gi, "$1 ***")
    .replace(/\bnw_[0-9a-f]+_[0-9a-f]+\b/gi, "nw_***");
