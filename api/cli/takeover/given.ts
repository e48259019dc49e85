import type { Form } from "../terminal.ts";

/** Flags under commander's names. */
export interface TakeoverGiven extends Readonly<Record<string, unknown>> {
  readonly dryRun?: boolean;
  readonly stop?: boolean;
  /** Also where no daemon is there that starts the pods afterwards. */
  readonly withoutDaemon?: boolean;
  /** Also where a kubelet is on the machine whose runtime cannot be told. */
  readonly kubeletElsewhere?: boolean;
  readonly settings?: string;
  readonly output: Form;
}
