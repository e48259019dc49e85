import type { PodUsage } from "../../../actuator/status/node-status.ts";
import { amountText } from "../../text/amount-text.ts";

/** `250m`, `1.5` CPUs as `1500m`. */
export const milliText = (milli: number): string => amountText("cpu", Math.round(milli));
/** `12.5 %` of the periods. */
export const throttledText = (permille: number): string => `${Math.round(permille) / 10} %`;
/** `3.1/0/12 %` */
export const pressureText = ({ cpu, memory, io }: NonNullable<PodUsage["pressure"]>): string =>
  `${[cpu, memory, io].map((percent) => Math.round(percent * 10) / 10).join("/")} %`;
