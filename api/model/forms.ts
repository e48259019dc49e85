import * as z from "zod";
import { count } from "./fields.ts";
import type { Bytes, EpochMs } from "./units.ts";

/**
 * Building blocks of decision forms. A kind's form is a `z.lazy` schema, and its parts are functions: everybody can
 * use the types, but the schemas are built only where answers are described (OpenAPI) or checked (the actuator,
 * tests), not in a process that only decides.
 */

/** The deeply read-only type of a schema's values, or of the schema that a function returns. */
export type Form<S extends z.ZodType | (() => z.ZodType)> = Immutable<z.output<S extends () => infer Made ? Made : S>>;
type Immutable<T> = unknown extends T
  ? T
  : T extends string | number | boolean | null | undefined
    ? T
    : { readonly [K in keyof T]: Immutable<T[K]> };

/** A text of an answer; messages of a kubelet may be longer than what is posted. */
export const answerText = z.string().max(65_536);
export const texts = z.array(answerText);
export const integer = z.int();
/** A number whose type has a unit. */
export const ofUnit = <U extends number>(schema: z.ZodType<number>) => schema as unknown as z.ZodType<U, U>;
export const byteCount = ofUnit<Bytes>(count.describe("bytes"));
export const milliseconds = z.number().describe("milliseconds");
export const epochTime = ofUnit<EpochMs>(integer.describe("epoch ms"));

/** How answers name a pod. */
export const podRef = z.strictObject({ namespace: answerText, name: answerText, uid: answerText });
export type PodRef = Form<typeof podRef>;
/** `NAMESPACE/NAME`. apimachinery: types.NamespacedName. */
export const namespacedName = ({ namespace, name }: Omit<PodRef, "uid">): string => `${namespace}/${name}`;

/** The values that a reason or a counterfactual uses. */
export type Numbers = Readonly<Record<string, string | number | boolean | undefined>>;
/** A record of such values; undefined ones are not in its JSON. */
export const numbers: z.ZodType<Numbers, Numbers> = z.record(
  z.string(),
  z.union([z.string(), z.number(), z.boolean()]),
);

/** A step of the reasoning: a stable code, the value that it explains (for example `cpuShares`), and the numbers it used. */
export interface Reason<Code extends string = string> {
  readonly code: Code;
  readonly field: string;
  readonly numbers?: Numbers;
}
/** All reasons of one place. */
export interface PlaceReasons<Code extends string = string> {
  /** The cgroup's path or the resource's name that the reasons speak of. */
  readonly at: string;
  readonly because: readonly Reason<Code>[];
}
export const reasonForm = <Code extends string>(code: z.ZodType<Code, Code>): z.ZodType<Reason<Code>> =>
  z
    .strictObject({
      code,
      field: z.string().describe("the value at the place `at` that the reason explains, such as cpuShares"),
      numbers: numbers.exactOptional(),
    })
    .describe("one step of the reasoning, with the numbers that it used");
/** A reason as the history has it. */
export const recordedReason = reasonForm(
  z
    .string()
    .describe("one of the kind's reason codes, or a code of the other version of Nodewise that recorded the decision"),
);
export const placeReasonsForm = <Code extends string>(reason: z.ZodType<Reason<Code>>): z.ZodType<PlaceReasons<Code>> =>
  z
    .strictObject({
      at: z
        .string()
        .describe(
          "the place that the reasons are about: the path of a cgroup, or the name of a resource, pod, image or other object",
        ),
      because: z.array(reason),
    })
    .describe("the reasons for the values at one place");
/** A place where two decisions differ. */
export const placeDifference = z.strictObject({
  path: z.string(),
  recorded: z.unknown().optional(),
  replayed: z.unknown().optional(),
  resources: z
    .strictObject({ recorded: z.string().exactOptional(), replayed: z.string().exactOptional() })
    .describe("the resource or signal whose amount each value is, if the answer names it")
    .exactOptional(),
});
/** A place where two decisions differ, with shortened values. */
export const shortDifference = placeDifference.extend({
  omitted: z
    .array(z.enum(["recorded", "replayed"]))
    .describe("the sides whose value is too long to be listed")
    .exactOptional(),
});

/** Reason codes of every kind that reads pods. */
export const REASONS_OF_PODS = ["pods_of_other_nodes"] as const;
