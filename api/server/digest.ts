import { hash } from "node:crypto";

/** sha256 of the UTF-8 of a text, lower case hex. */
export const sha256 = (text: string): string => hash("sha256", text, "hex");
