import { expect, test } from "vitest";
import { serving } from "../api/serving.ts";
import { LEAST, schemathesis, whyNot } from "./schemathesis.ts";

const [SEED, SECONDS] = [20_261_123, 60];
const skipped = whyNot === undefined ? "" : ` (skipped: ${whyNot})`;

test.skipIf(whyNot !== undefined)(
  `Schemathesis finds no violation of the API's contract in ${SECONDS} s from seed ${SEED}${skipped}`,
  {
    timeout: 900_000,
  },
  async () => {
    const { api, store, dataDir } = await serving();
    const runs = await schemathesis({ url: api.url, store, seed: SEED, seconds: SECONDS, folder: dataDir });
    for (const { code, message, phases } of runs) {
      expect(code, message).toBe(0);
      for (const phase of phases) expect(message, message).toMatch(new RegExp(`✅ +${phase}$`, "m"));
      const [, selected, all] = /Selected: (\d+)\/(\d+)$/m.exec(message) ?? [];
      // all operations except the export and the import
      expect(Number(selected), message).toBe(Number(all) - 2);
      expect(Number(/(\d+) generated/.exec(message)?.[1]), message).toBeGreaterThanOrEqual(LEAST);
    }
  },
);
