import { err, ok, type Result } from "../../api/model/result.ts";

const DOMAIN = String.raw`(?:[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?(?:\.[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?)*|\[[a-fA-F0-9:]+\])(?::[0-9]+)?`;
const PART = String.raw`[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*`;
const TAG = String.raw`[\w][\w.-]{0,127}`;
const DIGEST = `[A-Za-z][A-Za-z0-9]*(?:[-_+.][A-Za-z][A-Za-z0-9]*)*:[0-9a-fA-F]{32,}`;
/** distribution/reference: reference, as a user writes it. */
const REFERENCE = new RegExp(`^((?:${DOMAIN}/)?${PART}(?:/${PART})*)(?::(${TAG}))?(?:@(${DIGEST}))?$`);

/**
 * The name that the runtime is asked for: with `:latest` where neither tag nor digest is given. Error: what is wrong with
 * the name. kubelet 1.36: applyDefaultImageTag.
 */
export function withDefaultTag(image: string): Result<string, string> {
  const found = REFERENCE.exec(image);
  if (found === null) {
    const isUpperCase = REFERENCE.test(image.toLowerCase());
    const why = isUpperCase ? `repository name (${repositoryOf(image)}) must be lowercase` : "invalid reference format";
    return err(`couldn't parse image name "${image}": ${isUpperCase ? "invalid reference format: " : ""}${why}`);
  }
  return ok(found[2] === undefined && found[3] === undefined ? `${image}:latest` : image);
}
const repositoryOf = (image: string): string => image.replace(/(?::[^/]*)?$/, "");
