import { describe, expect, test } from "vitest";
import type { ImageGcFacts } from "../../../api/model/image-gc.ts";
import type { Json } from "../../kit/snapshots.ts";
import { type Answer, answer, gcNode, image, iso, MINUTE, Mi, next, START } from "./image-gc-kit.ts";

const nginx = (id = "n"): Json => image(id, { repoTags: ["quay.io/nginx:1"], repoDigests: ["quay.io/nginx@sha256:9"] });
const at = (minutes: number, images: Json[], before?: unknown, done?: string[]): Answer =>
  answer(gcNode(images, { observedAt: iso(START + minutes * MINUTE) }), before, {
    operation: "delete-unused",
    done: done?.map((id) => ({ id, end: "removed" })),
  });
const ledger = (a: Answer): ImageGcFacts["removed"] => next(a).removed;

describe("the record of an image that was removed", () => {
  test("keeps its names and size, while it is absent and when it is pulled again", () => {
    const gone = at(0, [nginx()], undefined, ["n"]);
    expect(ledger(gone)).toEqual([
      {
        id: "n",
        names: ["quay.io/nginx:1"],
        sizeBytes: 100 * Mi,
        atMs: START,
        times: 1,
        again: 0,
        away: true,
        firstDetectedAtMs: START,
      },
    ]);
    const away = at(5, [image("x")], gone.next);
    expect([ledger(away), away.decision.pulledAgain]).toEqual([ledger(gone), []]);
    const back = at(10, [image("x"), nginx()], away.next);
    expect(back.decision.pulledAgain).toEqual([
      {
        id: "n",
        runtimeHandler: "",
        names: ["quay.io/nginx:1"],
        sizeBytes: 100 * Mi,
        removedAtMs: START,
        againAtMs: START + 10 * MINUTE,
        times: 1,
        again: 1,
      },
    ]);
    const still = at(15, [nginx()], back.next);
    expect([still.decision.pulledAgain, ledger(still)[0]?.again]).toEqual([[], 1]);
    const twice = at(20, [nginx()], still.next, ["n"]);
    expect(ledger(twice)).toHaveLength(1);
    expect(ledger(twice)[0]).toMatchObject({ times: 2, again: 1, away: true, atMs: START + 20 * MINUTE });
  });
  test("matches an image of another id by its name, as one entry", () => {
    const gone = at(0, [nginx()], undefined, ["n"]);
    const other = at(5, [nginx("m")], gone.next);
    expect(other.decision.pulledAgain.map((p) => [p.id, p.again])).toEqual([["n", 1]]);
    const twice = at(10, [nginx("m")], other.next, ["m"]);
    expect(ledger(twice).map((e) => [e.id, e.times, e.again, e.away])).toEqual([["m", 2, 1, true]]);
    const nameless = at(5, [image("m")], gone.next);
    expect(nameless.decision.pulledAgain).toEqual([]);
  });
  test("does not count the image as pulled again when the same pass is reported twice", () => {
    const gone = at(0, [nginx()], undefined, ["n"]);
    const again = at(0, [nginx()], gone.next, ["n"]);
    expect([again.decision.pulledAgain, ledger(again)]).toEqual([[], ledger(gone)]);
    expect(at(0, [nginx()], gone.next).decision.pulledAgain).toEqual([]);
  });
  test("restarts the image's age when it is pulled again", () => {
    const gone = at(0, [nginx()], undefined, ["n"]);
    expect(next(at(5, [nginx()], gone.next)).records).toEqual([["n", START + 5 * MINUTE, null]]);
  });
  test("is limited to the last 1024 images", () => {
    const images = Array.from({ length: 1030 }, (_, i) => image(`i${i}`));
    const gone = at(
      0,
      images,
      undefined,
      images.map((i) => i["id"] as string),
    );
    expect([ledger(gone).length, ledger(gone)[0]?.id, ledger(gone).at(-1)?.id]).toEqual([1024, "i6", "i1029"]);
  });
  test("is not made when the removal failed or was stopped", () => {
    for (const end of ["failed", "stopped"]) {
      const a = answer(gcNode([nginx()]), undefined, { operation: "delete-unused", done: [{ id: "n", end }] });
      expect([ledger(a), next(a).records.length]).toEqual([[], 1]);
    }
  });
});
