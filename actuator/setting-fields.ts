import { join } from "node:path";
import * as z from "zod";
import { parseDuration } from "../api/model/duration.ts";
import { absolutePath, wholeNumber } from "../api/model/fields.ts";
import { socketPathOf } from "./containerd/endpoint.ts";
import { socketPathFault } from "./grpc/socket-path.ts";
import { parseListen } from "./status/listen.ts";

export const seconds = (min: number) => z.number().min(min).max(86_400);
export const file = z.string().min(1).max(4096);
export const endpoint = z.string().superRefine((text, ctx) => {
  const path = socketPathOf(text);
  if (!path.ok) ctx.addIssue({ code: "custom", message: path.error });
});
export const listen = z.string().superRefine((text, ctx) => {
  const address = parseListen(text);
  if (!address.ok) ctx.addIssue({ code: "custom", message: address.error });
});
/** Where a socket of that name is made: the kernel takes so many bytes of its path. */
export const socketDirectory = (socket: string) =>
  absolutePath.superRefine((directory, ctx) => {
    // told already
    if (!directory.startsWith("/")) return;
    const fault = socketPathFault(join(directory, socket));
    if (fault !== undefined) ctx.addIssue({ code: "custom", message: `cannot hold ${socket}: ${fault}` });
  });
/** A Go duration, as the kubelet's flag takes it. */
export const duration = z.string().transform((text, ctx) => {
  const parsed = parseDuration(text);
  if (parsed.ok && Number.isSafeInteger(parsed.value.millis)) return parsed.value;
  ctx.addIssue({ code: "custom", message: parsed.ok ? "must be whole milliseconds" : parsed.error });
  return z.NEVER;
});
/** Of a Go int32. */
export const limit = wholeNumber(-2147483648, 2147483647);
