import * as z from "zod";
import { answerText, type Form, integer } from "./forms.ts";

/** The two reservations of a KubeletConfiguration, and what a kubelet lets them hold. kubelet 1.36: parseResourceList. */
const RESERVE_FIELDS = ["kubeReserved", "systemReserved"] as const;
export type ReserveField = (typeof RESERVE_FIELDS)[number];

/** Notes that go with every advice: what was not measured, and what the figures do not show. */
const ADVICE_NOTES = [
  "few-measurements",
  "short-span",
  "no-times",
  "sampled",
  "without-stats",
  "no-kubelet-container",
  "no-runtime-container",
  "kube-reserved-kept",
  "not-measured",
  "images-on-node-fs",
  "pid-at-most",
  "reserved-system-cpus",
  "enforced-as-limits",
  "no-capacity",
] as const;
export type AdviceNoteCode = (typeof ADVICE_NOTES)[number];

const quantity = () => answerText.describe("a canonical quantity, such as 250m or 1536Mi");
const quantities = () => z.record(answerText, answerText);
const instant = () => answerText.describe("RFC 3339");

const reserve = () =>
  z.strictObject({
    field: z.enum(RESERVE_FIELDS),
    resource: answerText,
    measurements: integer.describe("how many of the measurements tell it"),
    median: quantity(),
    atPercentile: quantity().describe("the measurement that so many percent of them do not exceed"),
    peak: quantity(),
    now: quantity().nullable().describe("as the node has it; null: it reserves nothing of it"),
    recommended: quantity().nullable().describe("with the margin, rounded up; null: see the notes"),
  });
export type ReserveAdvice = Form<typeof reserve>;

const adviceNote = () =>
  z.strictObject({
    code: z.enum(ADVICE_NOTES),
    message: answerText,
    advice: answerText.nullable().describe("what can be done about it; null: nothing"),
  });
export type AdviceNote = Form<typeof adviceNote>;

const finding = () =>
  z.strictObject({
    severity: answerText.describe("as of a finding of /v1/lint; refuses-start: the kubelet does not start"),
    field: answerText,
    message: answerText,
    advice: answerText,
  });

/** The measured use of a node's system, and what to reserve for it. */
export const reservesAdvice = z.lazy(() =>
  z.strictObject({
    node: answerText.nullable(),
    policyVersion: answerText.describe("of the profile that decided on allocatable"),
    percentile: z.number(),
    marginPercent: z.number(),
    measurements: z.strictObject({
      count: integer,
      from: instant().nullable().describe("when the first one was made; null: no time is known"),
      to: instant().nullable(),
    }),
    reserves: z.array(reserve()).describe("what could be measured, kubeReserved first"),
    patch: z
      .strictObject({ kubeReserved: quantities().exactOptional(), systemReserved: quantities().exactOptional() })
      .describe("a merge patch (RFC 7396) of the configuration that reserves what is recommended; all else stays"),
    allocatable: z
      .array(
        z.strictObject({
          resource: answerText,
          from: quantity(),
          to: quantity(),
          change: quantity().describe("what pods get more of; negative: less"),
        }),
      )
      .describe("with the patch; empty where the node's capacity is not known"),
    findings: z.array(finding()).describe("what lint says of the configuration with the patch, and not without it"),
    notes: z.array(adviceNote()),
  }),
);
export type ReservesAdvice = Form<typeof reservesAdvice>;
