import { httpProbe } from "../../actuator/probes/http/http.ts";
import { requestUri, urlText } from "../../api/decide/go/url.ts";
import { httpRequest, type NamedPort, type ProbeTarget } from "../../api/decide/probes/http-request.ts";
import type { ProbeHttpGet, ProbeOutcome } from "../../api/model/probe-spec.ts";
import { probeServer, type ServerCase } from "./probe-server.ts";
import { type Suite, suite } from "./suite.ts";

interface RequestInput {
  readonly httpGet: {
    readonly path?: string;
    readonly port: number | string;
    readonly host?: string;
    readonly scheme?: ProbeHttpGet["scheme"];
    readonly httpHeaders?: readonly { readonly name: string; readonly value?: string }[];
  };
  readonly containerPorts: readonly (Partial<NamedPort> & { readonly containerPort: number })[];
  readonly podIP: string;
  readonly userAgentFragment: ProbeTarget;
}
const getOf = ({ path = "", port, host = "", scheme = "HTTP", httpHeaders = [] }: RequestInput["httpGet"]) => ({
  path,
  port,
  host,
  scheme,
  headers: httpHeaders.map(({ name, value = "" }) => ({ name, value })),
});

const probeRequest = suite({
  read: (input: RequestInput) => ({
    ...input,
    get: getOf(input.httpGet),
    ports: input.containerPorts.map(({ name = "", containerPort }) => ({ name, containerPort })),
  }),
  decide: ({ get, ports, podIP, userAgentFragment }, profile) =>
    httpRequest(get, ports, podIP, userAgentFragment, profile),
  show: (request) => {
    if (!request.ok) return { error: request.error };
    const { url, host, headers } = request.value;
    const shown = [...headers].map(([name, values]) => [name, values.map(withoutVersion)] as const);
    return { url: urlText(url), requestURI: requestUri(url), host, headers: Object.fromEntries(shown) };
  },
});
const withoutVersion = (value: string): string => value.replace(/^(kube-\w+)\/1\.\d\d$/, "$1/MAJOR.MINOR");

type HttpInput = ServerCase & { readonly timeoutMs: number };
/** Each case probes a real server. */
const probeHttp = suite({
  read: (input: HttpInput) => input,
  decide: async (input, profile) => {
    const server = await probeServer(input);
    try {
      const get = getOf({ path: "/start", port: server.port });
      const target = { podIP: "127.0.0.1", ports: [], containerId: "", env: [], profile };
      return { input, outcome: await httpProbe(get, target, input.timeoutMs) };
    } finally {
      await server.close();
    }
  },
  show: ({ input, outcome }) => shownOutcome(input, outcome),
});

function shownOutcome(input: HttpInput, outcome: ProbeOutcome): unknown {
  if ("error" in outcome) return { error: true, result: outcome.state ?? "unknown", output: "" };
  const { result, output } = outcome;
  // outputs with texts of Go's client, or of a server that the vectors describe only in part, are not compared
  const isOwn = !output.startsWith('Get "') && (result !== "success" || input.answersRaw === undefined);
  return { error: false, result, ...(isOwn ? { output: shortened(output) } : {}) };
}
const shortened = (output: string): string =>
  output.length > 200 ? `${output.slice(0, 40)}...(${output.length} bytes)` : output;

export const PROBE_SUITES: Readonly<Record<string, Suite>> = {
  "probe-request": probeRequest,
  "probe-http": probeHttp,
};
