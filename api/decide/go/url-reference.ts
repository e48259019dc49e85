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
  let path = "/";
  let isFirst = true;
  for (const element of elements) {
    if (element === ".") isFirst = false;
    else if (element === "..") {
      const slash = path.lastIndexOf("/");
      path = slash > 0 ? path.slice(0, slash) : "/";
      isFirst = path.length === 1;
    } else {
      path += isFirst ? element : `/${element}`;
      isFirst = false;
    }
  }
  const last = elements.at(-1);
  if (last === "." || last === "..") path += "/";
  // one slash stood there from the start
  return path.length > 1 && path[1] === "/" ? path.slice(1) : path;
}
function fullPath(base: string, reference: string): string {
  if (reference === "") return base;
  return reference.startsWith("/") ? reference : base.slice(0, base.lastIndexOf("/") + 1) + reference;
}
