import { spawnSync } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { parse, parseAllDocuments } from "yaml";
import { scratch } from "../actuator/manifests/scratch.ts";

export const ROOT = join(import.meta.dirname, "../..");
const DEPLOY = join(ROOT, "api/deploy");
/** A file of `api/deploy`. */
export const textOf = (file: string): string => readFileSync(join(DEPLOY, file), "utf8");

// biome-ignore lint/suspicious/noExplicitAny: Kubernetes objects, of which each test reads different fields
export type Any = any;
export const objectsIn = (text: string): readonly Any[] => parseAllDocuments(text).map((document) => document.toJS());

export const kustomization: Any = parse(textOf("kubernetes/kustomization.yaml"));
/** The objects in the files, in the order of kustomization.yaml. */
export const plain: readonly Any[] = kustomization.resources.flatMap((file: string) =>
  objectsIn(textOf(`kubernetes/${file}`)),
);
export const named = (objects: readonly Any[], kind: string, name: string): Any =>
  objects.find((one) => one.kind === kind && one.metadata.name === name);

const isOfCluster = ({ kind }: Any): boolean => /^(?:Cluster|Namespace)/.test(kind);
export const isPlaced = (object: Any): boolean =>
  isOfCluster(object) || object.metadata.namespace === kustomization.namespace;

export const KUBECTL = spawnSync("kubectl", ["version", "--client"]).status === 0;
function built(folder: string): readonly Any[] {
  const { status, stdout, stderr } = spawnSync("kubectl", ["kustomize", folder], { encoding: "utf8" });
  if (status !== 0 || stderr !== "") throw new Error(`kubectl kustomize ${folder}: ${status} ${stderr}`);
  // an API server refuses objects that contain such a directive
  const [directive] = /^\s*\$\w+:.*/m.exec(stdout) ?? [];
  if (directive !== undefined) throw new Error(`kubectl kustomize ${folder} leaves ${directive.trim()}`);
  return objectsIn(stdout);
}

/** The objects that `kubectl apply -k` sends; without kubectl the files' objects, with their namespace set. */
export const deployed = (): readonly Any[] =>
  KUBECTL
    ? built(join(DEPLOY, "kubernetes"))
    : plain.map((object) =>
        isOfCluster(object)
          ? object
          : { ...object, metadata: { ...object.metadata, namespace: kustomization.namespace } },
      );

/** The same with components, which kustomization.yaml contains as commented lines. Only kubectl can build it. */
export function deployedWith(...components: readonly ("tls" | "postgres")[]): readonly Any[] {
  const folders = components.flatMap((name) =>
    readdirSync(join(DEPLOY, "kubernetes", name)).map((file) => `${name}/${file}`),
  );
  const files = ["kustomization.yaml", ...kustomization.resources, ...folders] as readonly string[];
  const wanted = new RegExp(`^# (components:|- (?:${components.join("|")})$)`, "gm");
  const uncommented = files.map((file) => [file, textOf(`kubernetes/${file}`).replace(wanted, "$1")]);
  return built(scratch(Object.fromEntries(uncommented)));
}
