import { printable } from "../style.ts";

const SHORT = 13;
/** A CRI id as crictl shows it: without the algorithm, its first characters. */
export const shortId = (id: string): string => printable(id.replace(/^sha256:/, "").slice(0, SHORT));

/** Where the reasons speak of an image. */
export const imagePlace = ({ id, runtimeHandler }: Omit<Named, "names">): string =>
  runtimeHandler === "" ? id : `${id},${runtimeHandler}`;

interface Named {
  readonly id: string;
  readonly names: readonly string[];
  readonly runtimeHandler: string;
}
/** The first tag of an image, or its short id; how many tags more; the runtime handler that it is kept for. */
export function imageName({ id, names, runtimeHandler }: Named): string {
  const [first, ...others] = names;
  const name = first === undefined ? shortId(id) : printable(first.replace(DIGEST, "@$1"));
  const more = others.length === 0 ? "" : ` (+${others.length})`;
  return `${name}${more}${runtimeHandler === "" ? "" : ` for ${printable(runtimeHandler)}`}`;
}
const DIGEST = /@sha256:([0-9a-f]{12})[0-9a-f]+$/;
