import type { ImageGcDecision } from "../../model/image-gc.ts";
import type { Shown } from "./shown.ts";

export const imageGcTable = ({ decision }: Shown<ImageGcDecision>): string => JSON.stringify(decision);
