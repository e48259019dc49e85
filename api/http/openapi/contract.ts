import { perObject } from "../../base/cache.ts";
import type { Route } from "../route.ts";
import { type OpenApiDocument, openApiDocument } from "./document.ts";

export interface OpenApi {
  readonly document: OpenApiDocument;
  readonly text: string;
}

/** The document of the routes, made from the schemas at first use and the same ever after. */
export const openApi = perObject(async (routes: readonly Route[]): Promise<OpenApi> => {
  const document = await openApiDocument(routes);
  return { document, text: JSON.stringify(document) };
});
