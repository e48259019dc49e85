/**
 * The part of the Kubernetes client that is used. It is large, so only code that reads a cluster loads it: a module of its own in
 * dist/.
 */
export { KubeConfig } from "@kubernetes/client-node/dist/config.js";
export { ExecAuth } from "@kubernetes/client-node/dist/exec_auth.js";
export { customFetch, discovery, refreshTokenGrant } from "openid-client";
