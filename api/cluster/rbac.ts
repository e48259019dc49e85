import { DRA } from "./api-server.ts";
import type { AccessRule } from "./fault.ts";

const ROLE = "nodewise-reader";
const FOLLOWED = ["get", "list", "watch"];
/** The permissions for reading a cluster. */
const READS: readonly AccessRule[] = [
  ...["nodes", "pods", "events"].map((resource) => ({ resource, verbs: FOLLOWED })),
  ...["nodes/configz", "nodes/stats", "nodes/pods"].map((resource) => ({ resource, verbs: ["get"] })),
  { apiGroup: DRA, resource: "resourceclaims", verbs: FOLLOWED },
  ...["resourceslices", "deviceclasses"].map((resource) => ({ apiGroup: DRA, resource, verbs: ["list"] })),
];

/**
 * The ClusterRole for reading clusters, as YAML to paste (`kubectl apply -f -`), bound to the user if the server named it.
 * Permissions that not every reader needs, such as nodes/proxy, are a separate ClusterRole. Each role is complete, and each user has
 * a separate binding: applying it again removes no permission that was granted before, and grants none to others.
 * @param user as Kubernetes names it: `system:serviceaccount:NAMESPACE:NAME` is a ServiceAccount
 */
export function rbacYaml(missing: readonly AccessRule[], user?: string): string {
  const more = missing.filter(({ resource }) => !READS.some((rule) => rule.resource === resource));
  const byResource = Map.groupBy(more, ({ resource }) => resource);
  const roles = [
    [ROLE, READS] as const,
    ...Array.from(byResource, ([resource, rules]) => [`nodewise-${resource.replaceAll("/", "-")}`, rules] as const),
  ];
  const documents = roles.flatMap(([name, rules]) => [
    roleYaml(name, rules),
    ...(user === undefined ? [] : [bindingYaml(name, user)]),
  ]);
  return `${documents.join("\n---\n")}\n`;
}

function roleYaml(name: string, rules: readonly AccessRule[]): string {
  const alike = Map.groupBy(rules, ({ apiGroup = '""', verbs }) => `${apiGroup}|${[...verbs].sort().join(", ")}`);
  const lines = Array.from(alike, ([key, same]) => {
    const [group, verbs] = key.split("|");
    const resources = [...new Set(same.map(({ resource }) => resource))].sort().join(", ");
    return `- {apiGroups: [${group}], resources: [${resources}], verbs: [${verbs}]}`;
  });
  return [
    "apiVersion: rbac.authorization.k8s.io/v1",
    "kind: ClusterRole",
    `metadata: {name: ${name}}`,
    "rules:",
    ...lines,
  ].join("\n");
}

const bindingYaml = (role: string, user: string): string =>
  [
    "apiVersion: rbac.authorization.k8s.io/v1",
    "kind: ClusterRoleBinding",
    `metadata: {name: ${JSON.stringify(`${role}:${user.replace(/[/%]/g, "-")}`)}}`,
    `roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: ${role}}`,
    "subjects:",
    `- ${subjectOf(user)}`,
  ].join("\n");

function subjectOf(user: string): string {
  const [, namespace, name] = /^system:serviceaccount:([^:]+):([^:]+)$/.exec(user) ?? [];
  return namespace === undefined
    ? `{apiGroup: rbac.authorization.k8s.io, kind: User, name: ${JSON.stringify(user)}}`
    : `{kind: ServiceAccount, namespace: ${namespace}, name: ${name}}`;
}
