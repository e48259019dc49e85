import { expect, test } from "vitest";
import { ROUTES } from "../../api/http/index.ts";
import { openApi } from "../../api/http/openapi/contract.ts";
// a workspace with a TypeScript of its own: the generator does not work with the project's
import generate, { astToString } from "./client/node_modules/openapi-typescript/dist/index.mjs";
import ts from "./client/node_modules/typescript/lib/typescript.js";

/** The faults that the compiler finds in each of the files, which may import each other. */
function faultsIn(files: Readonly<Record<string, string>>): Readonly<Record<string, readonly string[]>> {
  const options = { strict: true, noUncheckedIndexedAccess: true, target: ts.ScriptTarget.ES2022, types: [] };
  const host = ts.createCompilerHost(options);
  const { getSourceFile, fileExists } = host;
  host.fileExists = (name) => name in files || fileExists(name);
  host.getSourceFile = (name, version) =>
    files[name] === undefined ? getSourceFile(name, version) : ts.createSourceFile(name, files[name], version);
  const program = ts.createProgram(Object.keys(files), options, host);
  const faults = Object.keys(files).map((name) => [
    name,
    ts
      .getPreEmitDiagnostics(program, program.getSourceFile(name))
      .map(({ messageText }) => ts.flattenDiagnosticMessageText(messageText, "\n")),
  ]);
  return Object.fromEntries(faults);
}

const BEGIN = `
  import type { paths } from "./api";
  type Answer<P extends keyof paths, M extends "get" | "post"> =
    paths[P] extends { [m in M]: { responses: { 200: { content: { "application/json": infer A } } } } } ? A : never;
  declare const answer: Answer<"/v1/decisions/{decision}", "post">;
  declare const record: Answer<"/v1/decisions/{decision}", "get">;
  declare const replay: Answer<"/v1/decisions/{decision}/replay", "post">;
  declare const turn: Answer<"/v1/nodes/{node}/turns", "post">;
`;
const RIGHT = `${BEGIN}
  if (answer.kind === "allocatable") { const cpu: string | undefined = answer.decision.allocatable["cpu"]; void cpu; }
  if (answer.kind === "admission") { const admit: boolean = answer.decision.admit; void admit; }
  if (record.kind === "cgroups") { const path: string | undefined = record.decision.cgroups[0]?.path; void path; }
  if (replay.kind === "cgroups") { const path: string | undefined = replay.replayed.decision.cgroups[0]?.path; void path; }
  for (const one of turn.decisions)
    if ("decision" in one && one.kind === "allocatable") void one.decision.allocatable["cpu"]?.length;
    else if ("patch" in one) void one.patch.length;
    else if ("problem" in one) void one.problem.code;`;

test("a client whose types openapi-typescript makes of the document knows by an answer's kind what its decision holds", async () => {
  const { document } = await openApi(ROUTES);
  const api = astToString(await generate(JSON.parse(JSON.stringify(document))));
  const faults = faultsIn({
    "/api.ts": api,
    "/right.ts": RIGHT,
    "/another.ts": `${BEGIN} if (answer.kind === "cgroups") void answer.decision.allocatable;`,
    "/any.ts": `${BEGIN} void answer.decision.allocatable;`,
    "/unknown.ts": `${BEGIN} if (answer.kind === "allocatables") void 0;`,
  });
  expect(faults).toEqual({
    "/api.ts": [],
    "/right.ts": [],
    "/another.ts": [expect.stringContaining("'allocatable' does not exist")],
    "/any.ts": [expect.stringContaining("'allocatable' does not exist")],
    "/unknown.ts": [expect.stringContaining("no overlap")],
  });
}, 60_000);
