import type { ApiClient } from "./api-client.ts";

/** A Kubernetes object as in a manifest. */
export interface Manifest {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: { readonly name: string; readonly namespace?: string };
}
interface Served {
  readonly resources: readonly { readonly name: string; readonly kind: string; readonly namespaced: boolean }[];
}

/**
 * Applies objects as `kubectl apply --server-side` does, with unknown fields refused. Returns the server's warnings.
 * `dryRun`: the server validates everything and persists nothing.
 */
export async function apply(
  api: ApiClient,
  objects: readonly Manifest[],
  { dryRun = false }: { readonly dryRun?: boolean } = {},
): Promise<readonly string[]> {
  const query = `fieldManager=test&force=true&fieldValidation=Strict${dryRun ? "&dryRun=All" : ""}`;
  const warnings: string[] = [];
  for (const object of objects) {
    const path = `${await pathOf(api, object)}?${query}`;
    const answer = await api.ask("PATCH", path, object, "application/apply-patch+yaml");
    if (answer.status >= 300)
      throw new Error(`${object.kind} ${object.metadata.name}: ${answer.status} ${answer.body}`);
    warnings.push(...answer.warnings);
  }
  return warnings;
}

async function pathOf(api: ApiClient, { apiVersion, kind, metadata }: Manifest): Promise<string> {
  const group = apiVersion.includes("/") ? `/apis/${apiVersion}` : `/api/${apiVersion}`;
  const { resources } = await api.get<Served>(group);
  const resource = resources.find((one) => one.kind === kind && !one.name.includes("/"));
  if (resource === undefined) throw new Error(`the API server has no ${apiVersion} ${kind}`);
  const within = resource.namespaced ? `/namespaces/${metadata.namespace ?? "default"}` : "";
  return `${group}${within}/${resource.name}/${metadata.name}`;
}
