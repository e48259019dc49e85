import type { AccessRule } from "./fault.ts";

const ROLE = "nodewise-reader";

/**
 * The ClusterRole that gives these rights as YAML to paste (`kubectl apply -f -`), bound to the user where the server named it.
 * @param user as Kubernetes names it: `system:serviceaccount:NAMESPACE:NAME` is a ServiceAccount
 */
export function rbacYaml(rules: readonly AccessRule[], user?: string): string {
  const byVerbs = Map.groupBy(rules, ({ verbs }) => [...verbs].sort().join(", "));
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
    `metadata: {name: ${ROLE}}`,
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
