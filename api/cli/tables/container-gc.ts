import type { ContainerGcDecision } from "../../model/container-gc.ts";
import type { Shown } from "./shown.ts";

export const containerGcTable = ({ decision }: Shown<ContainerGcDecision>): string => JSON.stringify(decision);
