import type { SourceDocument } from "../../actuator/manifests/source-document.ts";

/** A document of a file; in a large one places cannot be looked up. */
export interface InputDocument extends SourceDocument {
  readonly hasPlaces: boolean;
}
