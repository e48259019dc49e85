import type { SourceGiven } from "../pods/read-status.ts";

/** Which container of which pod. */
export interface ContainerGiven extends SourceGiven {
  readonly namespace?: string;
  readonly container?: string;
  readonly runtimeEndpoint?: string;
  /** The daemon's settings file. */
  readonly settings?: string;
}
/** And it is known which runtime is asked. */
export type WithEndpoint<G extends ContainerGiven> = G & { readonly runtimeEndpoint: string };
export interface LogsGiven extends ContainerGiven {
  readonly allContainers?: boolean;
  readonly follow?: boolean;
  readonly previous?: boolean;
  readonly prefix?: boolean;
  /** -1: all. */
  readonly tail: number;
  /** Milliseconds. */
  readonly since?: number;
  /** Nanoseconds since 1970. */
  readonly sinceTime?: bigint;
  readonly timestamps?: boolean;
  readonly limitBytes?: number;
}
export interface ExecGiven extends ContainerGiven {
  readonly stdin?: boolean;
  readonly tty?: boolean;
  /** Seconds; 0: none. */
  readonly timeout: number;
}
