import type { RunnablePod, TextMap } from "../pod.ts";
import type { At } from "./at.ts";
import { dnsLabel, dnsSubdomain, labelValue, qualifiedName } from "./names.ts";
import { checkFields } from "./rule.ts";
import { RULES } from "./rules.ts";

const CONFIG_SOURCE = "kubernetes.io/config.source";
const CONFIG_HASH = "kubernetes.io/config.hash";
const CONFIG_MIRROR = "kubernetes.io/config.mirror";
const SECCOMP = /^(?:container\.)?seccomp\.security\.alpha\.kubernetes\.io\//;
const ANNOTATIONS_BYTES = 256 * 1024;
/** It names directories and cgroups. */
const UID = /^[A-Za-z0-9](?:[A-Za-z0-9.-]{0,251}[A-Za-z0-9])?$/;

type Identity = Pick<RunnablePod, "namespace" | "name" | "uid" | "labels" | "annotations" | "isStatic">;

/** No API server has filled it in: each pod of a manifest has its hash. kubelet 1.36: config.applyDefaults. */
export const isOfManifest = (annotations: TextMap): boolean => annotations[CONFIG_HASH] !== undefined;

/** The pod's identity. kubernetes 1.36: ValidateObjectMeta; a node needs the uid beyond that. */
export function identityOf(metadata: At): Identity {
  checkFields(metadata, RULES.ObjectMeta);
  const name = metadata.field("name");
  const namespace = metadata.field("namespace");
  const uid = metadata.field("uid");
  checkName(name, dnsSubdomain);
  checkName(namespace, dnsLabel);
  if (uid.text() === "" && uid.isEmpty) uid.required("it names the pod's directories and cgroup");
  else if (!UID.test(uid.text())) uid.invalid("must be letters, digits, `-` or `.`, at most 253");
  const annotations = annotationsOf(metadata.field("annotations"));
  const source = annotations[CONFIG_SOURCE];
  return {
    namespace: namespace.text(),
    name: name.text(),
    uid: uid.text(),
    labels: labelsOf(metadata.field("labels")),
    annotations,
    isStatic: source !== undefined && source !== "api",
  };
}

/** Null: nobody asked for its end. `grace`: the pod's own. */
export function deletionOf(metadata: At, grace: number): RunnablePod["deletion"] {
  const at = metadata.field("deletionTimestamp");
  const seconds = metadata.field("deletionGracePeriodSeconds").whole();
  if (at.isEmpty) return null;
  const atMs = Date.parse(at.text());
  if (!/^\d{4}-\d\d-\d\dT/.test(at.text()) || Number.isNaN(atMs)) {
    at.invalid("must be an RFC 3339 time such as 2026-01-31T12:00:00Z");
    return null;
  }
  return { atMs, graceSeconds: seconds ?? grace };
}

function checkName(at: At, rule: (name: string) => readonly string[]): void {
  if (at.isEmpty) at.required();
  else if (typeof at.value === "string") at.invalids(rule(at.value));
  else at.text();
}

function labelsOf(labels: At): TextMap {
  return textMapOf(labels, (key, value) => {
    for (const says of qualifiedName(key)) labels.fault(`Invalid value: ${JSON.stringify(key)}: ${says}`);
    value.invalids(labelValue(value.text()));
  });
}

function annotationsOf(annotations: At): TextMap {
  let size = 0;
  const map = textMapOf(annotations, (key, value) => {
    size += key.length + value.text().length;
    const says = qualifiedName(key.toLowerCase());
    for (const s of says) annotations.fault(`Invalid value: ${JSON.stringify(key)}: ${s}`);
    if (SECCOMP.test(key)) value.fault("no longer read: remove it, and set `securityContext.seccompProfile`");
    if (key === CONFIG_MIRROR) {
      value.fault("the API server's image of a static pod: leave it out, and give the manifest of the static pod");
    }
  });
  if (size > ANNOTATIONS_BYTES) annotations.fault(`Too long: may not be more than ${ANNOTATIONS_BYTES} bytes`);
  return map;
}

function textMapOf(at: At, check: (key: string, value: At) => void): TextMap {
  if (at.isAbsent || !at.isObject()) return {};
  return Object.fromEntries(
    at.keys.map((key) => {
      const value = at.field(key);
      check(key, value);
      return [key, value.text()];
    }),
  );
}
