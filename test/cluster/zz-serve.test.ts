import { test } from "vitest";
import { testCluster } from "/tmp/wt/cluster/test/kit/cluster.ts";
import { writeFileSync } from "node:fs";
test("serve", async () => {
  const c = await testCluster();
  c.users["poor"] = { name: "system:serviceaccount:ops:nodewise", may: ["get nodes", "list nodes", "list pods", "get pods"] };
  c.api.put("pods", { metadata: { name: "pending", namespace: "shop" }, spec: { containers: [{ name: "c", resources: { requests: { cpu: "3" } } }] }, status: { phase: "Pending" } });
  c.api.kubelets.set("n2", c.kubelet);
  writeFileSync("/tmp/cl_kc", c.kubeconfig());
  await import("node:fs").then((fs) => { fs.copyFileSync(c.kubeconfig(), "/tmp/cl_kc"); fs.copyFileSync(c.kubeconfig({ token: "poor" }), "/tmp/cl_poor"); });
  await new Promise((r) => setTimeout(r, 3600_000));
}, 4000_000);
