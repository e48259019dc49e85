import * as z from "zod";
import { LINT_SEVERITIES } from "../decide/lint/lint.ts";

/** What is wrong with a configuration, as the API answers it. */
export const lintFinding = z.strictObject({
  code: z.string(),
  severity: z
    .enum(LINT_SEVERITIES)
    .describe("refuses-start: the kubelet does not start; error: it does not do what is written; warning: it harms"),
  field: z.string().describe('a path in the KubeletConfiguration, such as evictionHard["memory.available"]'),
  message: z.string(),
  kubelet: z.boolean().describe("the message is the kubelet's own, byte for byte"),
  advice: z.string(),
  fix: z.unknown().describe("a merge patch (RFC 7396) of the configuration; null: a person must choose"),
  touched: z
    .strictObject({
      decisions: z
        .number()
        .describe(
          "recorded decisions that it touched: of those whose own configuration has the same finding (code and field), with a fix those that would have been others with it; without one those whose answer names it or would be another without the field",
        ),
      of: z.number().describe("of so many that were tried, the newest"),
    })
    .nullable()
    .describe("null: the finding is of no field"),
});
export const lintAnswer = z.strictObject({
  findings: z.array(lintFinding).describe("by severity, then field"),
});
