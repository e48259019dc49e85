import { afterAll, beforeAll } from "vitest";
import { type RunningApi, startApi } from "../../api/server.ts";

const SILENT = { info() {}, warn() {}, error() {} };
type Options = Parameters<typeof startApi>[0];

/** Starts the API on a free loopback port; the caller closes it. */
export async function startedApi(options: Options): Promise<RunningApi> {
  const api = await startApi({ port: 0, log: SILENT, ...options });
  if (!api.ok) throw new Error(api.error.message);
  return api.value;
}

/**
 * The API for all tests of a file or a describe: it runs from the beforeAll that this call registers until all tests
 * have ended.
 */
export function sharedApi(options: Options): Pick<RunningApi, "url"> {
  let api: RunningApi | undefined;
  beforeAll(async () => {
    api = await startedApi(options);
  });
  afterAll(() => api?.close());
  return {
    get url() {
      if (api === undefined) throw new Error("the API does not run yet");
      return api.url;
    },
  };
}
