import { type OpenApiDocument, openApiDocument } from "./openapi/document.ts";
import type { Route } from "./routes/route.ts";

export interface OpenApi {
  readonly document: OpenApiDocument;
  readonly text: string;
}
const made = new WeakMap<readonly Route[], OpenApi>();

/** The document of the routes, made from the schemas at first use and the same ever after. */
export function openApi(routes: readonly Route[]): OpenApi {
  let found = made.get(routes);
  if (found === undefined) {
    const document = openApiDocument(routes);
    found = { document, text: JSON.stringify(document) };
    made.set(routes, found);
  }
  return found;
}
