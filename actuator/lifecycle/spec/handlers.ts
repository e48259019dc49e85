import type { ProbeHttpGet, ProbePort } from "../../../api/model/probe.ts";
import type { At } from "./at.ts";
import { headerName, portName } from "./names.ts";
import { checkFields } from "./rule.ts";
import { RULES } from "./rules.ts";

/** The command of hooks and probes. kubernetes 1.36: validateExecAction. */
export function execOf(at: At): { readonly exec: readonly string[] } {
  checkFields(at, RULES.ExecAction);
  const command = at.field("command");
  if (command.isEmpty) command.required();
  return { exec: command.texts() };
}

/** The address of hooks and probes. kubernetes 1.36: validateHTTPGetAction. */
export function httpGetOf(at: At): ProbeHttpGet {
  checkFields(at, RULES.HTTPGetAction);
  const headers = at.field("httpHeaders").items();
  for (const header of headers) {
    checkFields(header, RULES.HTTPHeader);
    header.field("name").invalids(headerName(header.field("name").text()));
  }
  return {
    scheme: at.field("scheme").choice(["HTTP", "HTTPS"], "HTTP"),
    host: at.field("host").text(),
    port: portOf(at.field("port")),
    path: at.field("path").isEmpty ? "/" : at.field("path").text(),
    headers: headers.map((h) => ({ name: h.field("name").text(), value: h.field("value").text() })),
  };
}

/** A number, or a name that one of the container's ports may have. kubernetes 1.36: ValidatePortNumOrName. */
export function portOf(at: At): ProbePort {
  if (at.isAbsent) at.required();
  else if (typeof at.value === "number") return at.between(1, 65_535) ?? 0;
  else {
    at.invalids(portName(at.text()));
    return at.text();
  }
  return 0;
}
