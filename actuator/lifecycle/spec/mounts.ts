import type { VolumeMount } from "../pod.ts";
import type { At } from "./at.ts";
import { checkDescending } from "./path.ts";
import { checkFields } from "./rule.ts";
import { RULES } from "./rules.ts";

/** `volumes`: the names that there are, of refused ones too. kubernetes 1.36: ValidateVolumeMounts. */
export function mountsOf(list: At, volumes: ReadonlySet<string>, privileged: boolean): readonly VolumeMount[] {
  const places = new Set<string>();
  return list.items().map((at) => {
    checkFields(at, RULES.VolumeMount);
    const name = at.field("name");
    if (name.isEmpty) name.required();
    else if (!volumes.has(name.text())) name.fault(`Not found: ${JSON.stringify(name.text())}`);
    const mountPath = at.field("mountPath");
    checkPlace(mountPath, places);
    const subPath = at.field("subPath");
    const expression = at.field("subPathExpr");
    if (!subPath.isEmpty) checkDescending(subPath);
    if (!expression.isEmpty) {
      if (!subPath.isEmpty) expression.invalid("subPathExpr and subPath are mutually exclusive");
      checkDescending(expression);
    }
    const propagation = at.field("mountPropagation");
    const word = propagation.choice(["Bidirectional", "HostToContainer", "None"], "None");
    if (word === "Bidirectional" && !privileged) {
      propagation.fault("Forbidden: Bidirectional mount propagation is available only to privileged containers");
    }
    return {
      volume: name.text(),
      mountPath: mountPath.text(),
      readOnly: at.field("readOnly").flag() ?? false,
      subPath: expression.isEmpty ? subPath.text() : expression.text(),
      isExpression: !expression.isEmpty,
      propagation: word,
    };
  });
}

/** The API server takes relative paths; a kubelet puts a `/` before them, which hides that two are the same. */
function checkPlace(at: At, places: Set<string>): void {
  const path = at.text();
  if (at.isEmpty) at.required();
  else if (path !== "" && !path.startsWith("/")) at.invalid("must be an absolute path");
  else if (path.split("/").includes("..")) at.invalid("must not contain '..'");
  if (places.has(path)) at.invalid("must be unique");
  places.add(path);
}
