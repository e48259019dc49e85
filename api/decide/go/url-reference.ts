import type { GoUrl } from "./url.ts";

/** A reference as it is meant on a page. Go 1.26: URL.ResolveReference. */
export function resolveReference(base: GoUrl, reference: GoUrl): GoUrl {
  const scheme = reference.scheme === "" ? base.scheme : reference.scheme;
  if (reference.scheme !== "" || reference.host !== "" || reference.user !== null) {
    return { ...reference, scheme, path: resolvePath(reference.path, "") };
  }
  if (reference.opaque !== "") return { ...reference, scheme, user: null, host: "", path: "" };
  const isSamePage = reference.path === "" && !reference.forceQuery && reference.query === "";
  const url = {
    ...reference,
    scheme,
    query: isSamePage ? base.query : reference.query,
    fragment: isSamePage && reference.fragment === "" ? base.fragment : reference.fragment,
  };
  if (reference.path === "" && base.opaque !== "") {
    return { ...url, opaque: base.opaque, user: null, host: "", path: "" };
  }
  return { ...url, host: base.host, user: base.user, path: resolvePath(base.path, reference.path) };
}

/** Without its dots. RFC 3986, 5.2.4; Go 1.26: net/url, resolvePath. */
function resolvePath(base: string, reference: string): string {
  const full = fullPath(base, reference);
  if (full === "") return "";
  const elements = full.split("/");
  // as a list: a text would be copied at each step back
  const kept: string[] = [];
  for (const element of elements) {
    if (element === "..") kept.pop();
    else if (element !== ".") kept.push(element);
    else if (kept.length === 0) kept.push("");
  }
  const last = elements.at(-1);
  const path = `/${kept.join("/")}${last === "." || last === ".." ? "/" : ""}`;
  // one slash stood there from the start
  return path.length > 1 && path[1] === "/" ? path.slice(1) : path;
}
function fullPath(base: string, reference: string): string {
  if (reference === "") return base;
  return reference.startsWith("/") ? reference : base.slice(0, base.lastIndexOf("/") + 1) + reference;
}
