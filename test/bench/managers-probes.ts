import { decideProbes } from "../../api/decide/kinds/probes.ts";
import { decodeProbesAsk } from "../../api/model/probes.ts";
import { effectiveSnapshot } from "../../api/profiles/effective.ts";
import { pod } from "../kit/pods.ts";

const HTTP = { httpGet: { path: "/healthz", port: 8080 } };
function caseOf(name: string, periodSeconds: number, container: object, ask: object) {
  const decoded = decodeProbesAsk({
    pod: pod("web", { spec: { containers: [{ name: "app", ...container }] } }),
    seconds: 600,
    ...ask,
  });
  if (!decoded.ok) throw new Error(JSON.stringify(decoded.error));
  const asked = { snapshot: effectiveSnapshot({}), facts: {}, ask: decoded.value, explain: "reasons" as const };
  return {
    name: `ten minutes of three probes, ${name} (period ${periodSeconds} s)`,
    run: () => {
      const decided = decideProbes(asked);
      if (!decided.ok || decided.value.decision.endMs !== 600_000) throw new Error("it ended early");
    },
  };
}
const three = (periodSeconds: number) => ({
  startupProbe: { ...HTTP, periodSeconds: 1, failureThreshold: 30 },
  livenessProbe: { ...HTTP, periodSeconds },
  readinessProbe: { ...HTTP, periodSeconds },
});
const FLAPPING = { startup: "fail*5,ok", liveness: "ok*20,fail*3,ok*40", readiness: "ok*9,fail*4,ok*7,fail*3,ok*5" };

/** One run makes a whole decision: the dry run, the lint and the answer. */
export const PROBES_CASES = [
  caseOf("all well", 10, three(10), {}),
  caseOf("restarts and flapping", 10, three(10), { outcomes: FLAPPING }),
  caseOf("restarts and flapping", 1, three(1), { outcomes: FLAPPING }),
];
