import { expect, test } from "vitest";
import { storedSnapshot } from "../../api/http/openapi/answers.ts";
import { replayAnswer } from "../../api/http/openapi/decision-answers.ts";
import type { ImageGcFacts } from "../../api/model/image-gc.ts";
import { asker } from "./api-gc.ts";
import { answer, fresh, get, type Of, post } from "./api-subject.ts";
import { diskSnapshot, idOf, localImage, manyImages, START, webContainer, webSandbox } from "./gc-snapshots.ts";

/** The parts of the runtime's lists that the history stores. */
export function runtimeKept(of: Of): void {
  const { ask } = asker(of);

  test("the history has no annotations, other labels, host paths or environment of the runtime's lists", async () => {
    const node = fresh("node");
    const secret = fresh("secret");
    const base = diskSnapshot(node, 0, [
      localImage("a", { annotations: { secret }, username: secret, uid: { value: secret } }),
    ]);
    const leaky = webContainer("leaky", "CONTAINER_EXITED", {
      annotations: { secret },
      labels: { app: secret, "io.kubernetes.pod.uid": "u-web" },
      mounts: [{ containerPath: "/data", hostPath: `/srv/${secret}`, source: secret }],
      envs: [{ key: "PASSWORD", value: secret }],
      image: { image: idOf("web"), annotations: { secret }, userSpecifiedImage: secret },
    });
    const sandboxes = [{ ...webSandbox, labels: { app: secret }, annotations: { secret } }];
    const snapshot = { ...base, runtime: { ...base.runtime, containers: [leaky], sandboxes, secret } };
    const { snapshotId, id } = await ask("container-gc", { snapshot });
    const stored = await get(of(), `/v1/snapshots/${snapshotId}`);
    const text = await stored.clone().text();
    expect(text).toContain("c-leaky");
    expect(text).toContain("/data");
    expect(text).not.toContain(secret);
    expect(await (await get(of(), `/v1/decisions/${id}`)).text()).not.toContain(secret);
    await answer(stored, storedSnapshot);
  });

  test("5,000 images and their facts are recorded over passes, and replayed", async () => {
    const node = fresh("node");
    const many = manyImages(5000);
    for (const [seconds, explain] of [
      [0, "off"],
      [100, "reasons"],
      [200, "reasons"],
    ] as const) {
      const pass = await ask("image-gc", { snapshot: diskSnapshot(node, seconds, many), explain });
      expect(pass.recorded, `pass at ${seconds} s`).toBe(true);
      const { records } = pass.next as ImageGcFacts;
      expect(records).toHaveLength(5002);
      expect(records.find(([id]) => id === many[0]?.id)?.[1]).toBe(START);
      const replayed = await answer(await post(of(), `/v1/decisions/${pass.id}/replay`, {}), replayAnswer);
      expect(replayed.same).toBe(true);
    }
  });

  test("20,000 images, the maximum, are recorded, remembered and replayed", async () => {
    const node = fresh("node");
    const many = manyImages(19_998);
    await ask("image-gc", { snapshot: diskSnapshot(node, 0, many), explain: "off" });
    const pass = await ask("image-gc", { snapshot: diskSnapshot(node, 100, many), explain: "off" });
    expect(pass.recorded).toBe(true);
    const { records } = pass.next as ImageGcFacts;
    expect(records).toHaveLength(20_000);
    expect(records.find(([id]) => id === many[0]?.id)?.[1]).toBe(START);
    const replayed = await answer(await post(of(), `/v1/decisions/${pass.id}/replay`, {}), replayAnswer);
    expect(replayed.same).toBe(true);
  });
}
