import type { Route } from "../route.ts";
import { type OpenApiDocument, openApiDocument } from "./document.ts";

export interface OpenApi {
  readonly document: OpenApiDocument;
  readonly text: string;
}
const known = new WeakMap<readonly Route[], Promise<OpenApi>>();

/** The document of the routes, made from the schemas at first use and the same ever after. */
export function openApi(routes: readonly Route[]): Promise<OpenApi> {
  const found = known.get(routes) ?? made(routes);
  known.set(routes, found);
  return found;
}

async function made(routes: readonly Route[]): Promise<OpenApi> {
  const document = await openApiDocument(routes);
  return { document, text: JSON.stringify(document) };
}
