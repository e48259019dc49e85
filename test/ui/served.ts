import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { RunningApi, ServeOptions } from "../../api/server.ts";
import { keptLog } from "../api/serving.ts";
import { startedApi } from "../kit/api.ts";

export interface Served extends RunningApi {
  /** The folder of the API's history. */
  readonly dataDir: string;
}
/**
 * Serves the API on loopback with its own history, which is removed when the API is closed; a given history is kept.
 */
export async function served(options: Partial<ServeOptions> & { readonly dataDir?: string } = {}): Promise<Served> {
  const own = options.dataDir === undefined ? mkdtempSync(join(tmpdir(), "nodewise-ui-")) : null;
  const dataDir = options.dataDir ?? own ?? "";
  const api = await startedApi({ threads: 0, log: keptLog(), ...options, dataDir });
  const close = async (): Promise<void> => {
    await api.close();
    if (own !== null) rmSync(own, { recursive: true, force: true });
  };
  return { ...api, dataDir, close };
}

/** Posts a question and returns the decision. */
export async function decided(
  url: string,
  kind: string,
  body: object,
  token?: string,
): Promise<{ readonly id: string }> {
  const response = await fetch(`${url}/v1/decisions/${kind}`, {
    method: "POST",
    headers: {
      "content-type": "application/json",
      ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
    },
    body: JSON.stringify(body),
  });
  if (!response.ok) throw new Error(await response.text());
  return (await response.json()) as { id: string };
}
