import type { ApiClient, Credentials } from "./api-client.ts";
import type { ControlPlane } from "./control-plane.ts";

export interface Rule {
  readonly apiGroups: readonly string[];
  readonly resources: readonly string[];
  readonly verbs: readonly string[];
}
const core = (resources: readonly string[], ...verbs: readonly string[]): Rule => ({
  apiGroups: [""],
  resources,
  verbs,
});

/**
 * The rights that reading a cluster needs, and no more: each part of the kubelet's API is granted by its own
 * subresource.
 */
export const READER: readonly Rule[] = [
  core(["nodes", "pods", "events"], "get", "list", "watch"),
  core(["nodes/configz", "nodes/stats", "nodes/pods", "nodes/metrics"], "get"),
  { apiGroups: ["resource.k8s.io"], resources: ["resourceclaims"], verbs: ["get", "list", "watch"] },
  { apiGroups: ["resource.k8s.io"], resources: ["resourceslices", "deviceclasses"], verbs: ["list"] },
];
/** The rights that readers had before decisions read ResourceClaims. */
export const WITHOUT_CLAIMS: readonly Rule[] = READER.slice(0, 2);
/** The rights to read the API server's objects, without rights on the kubelets' APIs. */
export const WITHOUT_KUBELETS: readonly Rule[] = READER.slice(0, 1);

const accounts = (namespace: string): string => `/api/v1/namespaces/${namespace}/serviceaccounts`;

/** Creates a service account with these rights in the whole cluster; returns a token of one hour. */
export async function serviceAccount(plane: ControlPlane, name: string, rules: readonly Rule[]): Promise<Credentials> {
  const rbac = "/apis/rbac.authorization.k8s.io/v1";
  const metadata = { name };
  await plane.admin.must("POST", accounts("default"), { metadata });
  await plane.admin.must("POST", `${rbac}/clusterroles`, { metadata, rules });
  await plane.admin.must("POST", `${rbac}/clusterrolebindings`, {
    metadata,
    roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "ClusterRole", name },
    subjects: [{ kind: "ServiceAccount", name, namespace: "default" }],
  });
  return tokenOf(plane, name);
}

/** A token of one hour for an existing service account. */
export async function tokenOf(plane: ControlPlane, name: string, namespace = "default"): Promise<Credentials> {
  const request = { apiVersion: "authentication.k8s.io/v1", kind: "TokenRequest", spec: { expirationSeconds: 3600 } };
  const path = `${accounts(namespace)}/${name}/token`;
  const { status } = await plane.admin.must<{ readonly status: { readonly token: string } }>("POST", path, request);
  return { token: status.token };
}

/** A token that the API server refuses, because its service account has been deleted. */
export async function revokedToken(plane: ControlPlane, name: string): Promise<Credentials> {
  const token = await serviceAccount(plane, name, READER);
  await plane.admin.must("DELETE", `${accounts("default")}/${name}`);
  return token;
}

/** All rights of the client's user on objects in the default namespace. */
export async function rightsOf(client: ApiClient): Promise<readonly Rule[]> {
  const api = "authorization.k8s.io/v1";
  const review = { apiVersion: api, kind: "SelfSubjectRulesReview", spec: { namespace: "default" } };
  const { status } = await client.must<{ readonly status: { readonly resourceRules: readonly Rule[] } }>(
    "POST",
    `/apis/${api}/selfsubjectrulesreviews`,
    review,
  );
  return status.resourceRules;
}
