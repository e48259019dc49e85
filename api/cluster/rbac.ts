import type { AccessRule } from "./fault.ts";

const ROLE = "nodewise-reader";
const FOLLOWED = ["get", "list", "watch"];
/** Everything that reading a cluster takes. */
const READS: readonly AccessRule[] = [
  ...["nodes", "pods", "events"].map((resource) => ({ resource, verbs: FOLLOWED })),
  ...["nodes/configz", "nodes/stats", "nodes/pods"].map((resource) => ({ resource, verbs: ["get"] })),
];

/**
 * The ClusterRole that reads clusters, with these rights, as YAML to paste (`kubectl apply -f -`), bound to the user where the
 * server named it. It is whole, and each user has a binding of its own: applied again, it takes no right away that was given before.
 * @param missing beside what every reader needs, such as nodes/proxy
 * @param user as Kubernetes names it: `system:serviceaccount:NAMESPACE:NAME` is a ServiceAccount
 */
export function rbacYaml(missing: readonly AccessRule[], user?: string): string {
  const more = missing.filter(({ resource }) => !READS.some((rule) => rule.resource === resource));
  const byVerbs = Map.groupBy([...READS, ...more], ({ verbs }) => [...verbs].sort().join(", "));
  const lines = Array.from(byVerbs, ([verbs, same]) => {
    const resources = [...new Set(same.map(({ resource }) => resource))].sort().join(", ");
    return `- {apiGroups: [""], resources: [${resources}], verbs: [${verbs}]}`;
  });
  const role = [
    "apiVersion: rbac.authorization.k8s.io/v1",
    "kind: ClusterRole",
    `metadata: {name: ${ROLE}}`,
    "rules:",
    ...lines,
  ];
  if (user === undefined) return `${role.join("\n")}\n`;
  const binding = [
    "---",
    "apiVersion: rbac.authorization.k8s.io/v1",
    "kind: ClusterRoleBinding",
    `metadata: {name: ${JSON.stringify(`${ROLE}:${user.replace(/[/%]/g, "-")}`)}}`,
    `roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: ${ROLE}}`,
    "subjects:",
    `- ${subjectOf(user)}`,
  ];
  return `${[...role, ...binding].join("\n")}\n`;
}

function subjectOf(user: string): string {
  const [, namespace, name] = /^system:serviceaccount:([^:]+):([^:]+)$/.exec(user) ?? [];
  return namespace === undefined
    ? `{apiGroup: rbac.authorization.k8s.io, kind: User, name: ${JSON.stringify(user)}}`
    : `{kind: ServiceAccount, namespace: ${namespace}, name: ${name}}`;
}
