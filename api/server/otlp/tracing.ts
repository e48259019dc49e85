import {
  ROOT_CONTEXT,
  type Span,
  SpanKind,
  SpanStatusCode,
  type TextMapGetter,
  type Tracer,
  trace,
} from "@opentelemetry/api";
import { W3CTraceContextPropagator } from "@opentelemetry/core";
import type { Tracing } from "../../dependencies.ts";

const headersOf: TextMapGetter<Headers> = {
  keys: (headers) => [...headers.keys()],
  get: (headers, name) => headers.get(name) ?? undefined,
};
const METHODS: ReadonlySet<string> = new Set(["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]);
const propagator = new W3CTraceContextPropagator();

/** The objects that Node's server passes to the app with the request. */
interface NodeEnv {
  readonly incoming?: { readonly httpVersion?: string; readonly socket?: { readonly remoteAddress?: string } };
}

/**
 * One span per request by the semantic conventions of HTTP servers, below the span in its `traceparent`. The attributes contain no
 * query, no header but User-Agent, and no body, since these may contain a token.
 */
export const tracingWith = (tracer: Tracer): Tracing => ({
  request: (request, env, requestId) => {
    const url = new URL(request.url);
    const { incoming } = (env ?? {}) as NodeEnv;
    const method = METHODS.has(request.method) ? request.method : "_OTHER";
    const userAgent = request.headers.get("user-agent");
    const peer = incoming?.socket?.remoteAddress;
    const parent = propagator.extract(ROOT_CONTEXT, request.headers, headersOf);
    const attributes = {
      "http.request.method": method,
      "url.scheme": url.protocol.slice(0, -1),
      "url.path": url.pathname,
      "server.address": url.hostname,
      "server.port": Number(url.port) || (url.protocol === "https:" ? 443 : 80),
      "network.protocol.version": incoming?.httpVersion ?? "1.1",
      "nodewise.request.id": requestId,
      ...(peer === undefined ? {} : { "client.address": peer }),
      ...(userAgent === null ? {} : { "user_agent.original": userAgent }),
    };
    // one clock for a span and its children: the system clock may be changed meanwhile
    const beganMs = Date.now() - performance.now();
    const now = (): number => beganMs + performance.now();
    const span = tracer.startSpan(method, { kind: SpanKind.SERVER, attributes, startTime: now() }, parent);
    const own = trace.setSpan(parent, span);
    return {
      traceId: span.spanContext().traceId,
      child: (name, startedMs, of, error) => {
        const startTime = beganMs + startedMs;
        const child = tracer.startSpan(name, { startTime, attributes: of as Record<string, string> }, own);
        if (error !== undefined) fail(child, error);
        child.end(now());
      },
      end: ({ route, status, code }) => {
        if (route !== null) {
          const template = route.replaceAll(/:(\w+)/g, "{$1}");
          span.updateName(`${method} ${template}`);
          span.setAttribute("http.route", template);
        }
        span.setAttribute("http.response.status_code", status);
        if (code !== undefined) span.setAttribute("error.type", code);
        // a client's error is no error of this server
        if (status >= 500) span.setStatus({ code: SpanStatusCode.ERROR });
        span.end(now());
      },
    };
  },
});

function fail(span: Span, error: string): void {
  span.setAttribute("error.type", error);
  span.setStatus({ code: SpanStatusCode.ERROR });
}
