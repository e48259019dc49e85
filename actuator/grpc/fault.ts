import { type ServiceError, status } from "@grpc/grpc-js";

type Failure = Pick<ServiceError, "code" | "details">;

/** gRPC's code by name. */
export const codeName = (code: status): string => status[code] ?? `CODE_${code}`;

/** True: a call ended at this client's deadline. A server returns the same code for a process that took too long. */
export const isOwnDeadline = ({ code, details }: Failure): boolean =>
  code === status.DEADLINE_EXCEEDED && details.startsWith("Deadline exceeded");

/** The details in one line, without the frame that the client library adds around an errno. */
export const plainDetails = (details: string): string =>
  details
    .replace(/\s+/g, " ")
    .replace(/^No connection established\. Last error: (?:Error: )?/, "")
    .replace(/\.? ?Resolution note: ?$/, "");
