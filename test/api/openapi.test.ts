import { describe, expect, test } from "vitest";
import { createApp } from "../../api/app.ts";
import { LIMITS } from "../../api/base/limits.ts";
import type { ApiDeps } from "../../api/dependencies.ts";
import { ROUTES } from "../../api/http/index.ts";
import { ANSWERS } from "../../api/http/openapi/answers.ts";
import { openApi } from "../../api/http/openapi/contract.ts";
import { OPERATIONS } from "../../api/http/openapi/operations.ts";
import { PROBLEMS } from "../../api/http/problem.ts";
import { PAGES } from "../../api/ui/index.ts";

const { document, text } = await openApi(ROUTES);
type Loose = Readonly<Record<string, unknown>>;
const operations = Object.entries(document.paths).flatMap(([path, methods]) =>
  Object.entries(methods).map(([method, operation]) => ({ path, method, operation: operation as Loose })),
);

/** Every object in the document, with its path. */
function* objects(value: unknown, at = ""): Generator<{ at: string; object: Loose }> {
  if (typeof value !== "object" || value === null) return;
  if (!Array.isArray(value)) yield { at, object: value as Loose };
  for (const [key, item] of Object.entries(value)) yield* objects(item, `${at}/${key}`);
}

const propertiesOf = (schema: string) =>
  (document.components.schemas[schema] as { properties: Record<string, Loose> }).properties;

describe("the OpenAPI document", () => {
  test("has exactly the app's routes that are not pages", () => {
    const app = createApp({ limits: { bodyBytes: 1, concurrency: 1 } } as ApiDeps);
    const pages = new Set(PAGES.map(({ method, path }) => `${method} ${path}`));
    const served = app.routes
      .filter((r) => r.method !== "ALL")
      .map((r) => `${r.method} ${r.path}`)
      .filter((route) => !pages.has(route));
    expect(Object.keys(OPERATIONS).sort()).toEqual([...new Set(served)].sort());
    expect(
      operations.map(({ path, method }) => `${method.toUpperCase()} ${path.replace(/\{(\w+)\}/g, ":$1")}`).sort(),
    ).toEqual([...new Set(served)].sort());
  });

  test("is version 3.1, and is served as the same JSON", () => {
    expect(document.openapi).toBe("3.1.0");
    expect(JSON.parse(text)).toEqual(JSON.parse(JSON.stringify(document)));
    expect(Object.keys(document)).toEqual(["openapi", "info", "tags", "paths", "components"]);
    expect(document.info).toMatchObject({ title: "Nodewise", version: expect.any(String) });
  });

  test("is generated in turns, so that other requests run in between", async () => {
    let turns = 0;
    const count = (): unknown => turns++ < 10_000 && setImmediate(count);
    count();
    // a new list of routes, for which no document is cached
    await openApi([...ROUTES]);
    expect(turns).toBeGreaterThan(Object.keys(document.components.schemas).length);
    turns = 10_000;
  });

  test("has no dangling references", () => {
    const refs = [...objects(document)].flatMap(({ object }) =>
      typeof object["$ref"] === "string" ? [object["$ref"]] : [],
    );
    expect(refs.length).toBeGreaterThan(50);
    for (const ref of new Set(refs)) {
      const found = ref
        .slice(2)
        .split("/")
        .reduce<unknown>((at, key) => (at as Loose | undefined)?.[key], document);
      expect(found, ref).toBeTypeOf("object");
    }
  });

  test("has well-formed schemas: known types, required properties that exist, valid patterns", () => {
    const TYPES = ["object", "array", "string", "number", "integer", "boolean", "null"];
    let checked = 0;
    for (const { at, object } of objects(document.components.schemas)) {
      if (at.endsWith("/properties") || at.endsWith("/numbers")) continue;
      checked++;
      for (const type of [object["type"]].flat()) if (type !== undefined) expect(TYPES, at).toContain(type);
      for (const name of (object["required"] as string[] | undefined) ?? []) {
        if (object["properties"] !== undefined) expect(Object.keys(object["properties"] as object), at).toContain(name);
      }
      if (typeof object["pattern"] === "string")
        expect(() => new RegExp(object["pattern"] as string, "u"), at).not.toThrow();
    }
    expect(checked).toBeGreaterThan(200);
  });

  test("names each operation once, declares its path parameters, and says who may call it", () => {
    expect(new Set(operations.map(({ operation }) => operation["operationId"])).size).toBe(operations.length);
    for (const { path, operation } of operations) {
      const declared = ((operation["parameters"] as Loose[] | undefined) ?? []).filter((p) => p["in"] === "path");
      expect(
        declared.map((p) => p["name"]),
        path,
      ).toEqual([...path.matchAll(/\{(\w+)\}/g)].map((m) => m[1]));
      for (const parameter of declared) expect(parameter["required"], path).toBe(true);
      expect(operation["security"], path).toBeInstanceOf(Array);
    }
  });

  test("describes a success and every error of each operation, with content", () => {
    for (const { path, method, operation } of operations) {
      const responses = operation["responses"] as Record<string, Loose>;
      expect(
        Object.keys(responses).some((status) => status.startsWith("2")),
        path,
      ).toBe(true);
      expect(Object.keys(responses), path).toContain("500");
      for (const [status, response] of Object.entries(responses)) {
        expect(response["description"], `${method} ${path} ${status}`).toBeTruthy();
        const types = Object.keys((response["content"] ?? {}) as object).filter((type) => type !== "text/csv");
        expect(types).toHaveLength(status === "304" ? 0 : 1);
      }
      if (operation["requestBody"] !== undefined)
        expect(Object.keys(responses), path).toEqual(
          expect.arrayContaining(["400", "413", "415"].filter((s) => path !== "/v1/batch" || s !== "413")),
        );
    }
  });

  test("has a schema for every answer, and the limits in force", () => {
    for (const name of Object.keys(ANSWERS)) expect(document.components.schemas).toHaveProperty(name);
    const pods = (propertiesOf("NodeSnapshot")["pods"]?.["anyOf"] as Loose[] | undefined) ?? [];
    expect(pods[0]?.["maxItems"]).toBe(LIMITS.pods);
    expect(String(document.info["description"])).toContain(`${LIMITS.bodyBytes / 2 ** 20} MiB`);
    expect(propertiesOf("Problem")["code"]?.["enum"]).toEqual(Object.keys(PROBLEMS));
  });
});
