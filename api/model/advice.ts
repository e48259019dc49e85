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
const instant = () => answerText.describe("an RFC 3339 time");

const reserve = () =>
  z.strictObject({
    field: z.enum(RESERVE_FIELDS),
    resource: answerText,
    measurements: integer.describe("the number of measurements that contain the resource"),
    median: quantity(),
    atPercentile: quantity().describe("the measurement that `percentile` percent of the measurements do not exceed"),
    peak: quantity(),
    now: quantity()
      .nullable()
      .describe("the present reservation of the node; null: the node reserves nothing of the resource"),
    recommended: quantity()
      .nullable()
      .describe(
        "the recommended reservation: `atPercentile` with the margin, rounded up; null: there is none, for the reason in `notes`",
      ),
  });
export type ReserveAdvice = Form<typeof reserve>;

const adviceNote = () =>
  z.strictObject({
    code: z.enum(ADVICE_NOTES),
    message: answerText,
    advice: answerText.nullable().describe("what to do about the note; null: nothing"),
  });
export type AdviceNote = Form<typeof adviceNote>;

const finding = () =>
  z.strictObject({
    severity: answerText.describe(
      "the severity, as in a finding of /v1/lint; refuses-start: the kubelet does not start",
    ),
    field: answerText,
    message: answerText,
    advice: answerText,
  });

/** The measured use of a node's system, and what to reserve for it. */
export const reservesAdvice = z.lazy(() =>
  z.strictObject({
    node: answerText.nullable(),
    policyVersion: answerText.describe("the policy version of the profile that decided on allocatable"),
    percentile: z.number(),
    marginPercent: z.number(),
    measurements: z.strictObject({
      count: integer,
      from: instant().nullable().describe("the time of the first measurement; null: not known"),
      to: instant().nullable(),
    }),
    reserves: z.array(reserve()).describe("the reservations that could be measured, kubeReserved first"),
    patch: z
      .strictObject({ kubeReserved: quantities().exactOptional(), systemReserved: quantities().exactOptional() })
      .describe(
        "a merge patch (RFC 7396) of the configuration that sets the recommended reservations and changes nothing else",
      ),
    allocatable: z
      .array(
        z.strictObject({
          resource: answerText,
          from: quantity(),
          to: quantity(),
          change: quantity().describe("the amount that pods gain; negative: they lose it"),
        }),
      )
      .describe("the node's allocatable before and after the patch; empty: the node's capacity is not known"),
    findings: z
      .array(finding())
      .describe("the lint findings that the configuration has with the patch and not without it"),
    notes: z.array(adviceNote()),
  }),
);
export type ReservesAdvice = Form<typeof reservesAdvice>;
