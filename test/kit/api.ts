import { afterAll, beforeAll } from "vitest";
import { type RunningApi, startApi } from "../../api/server.ts";

const SILENT = { info() {}, warn() {}, error() {} };
type Options = Parameters<typeof startApi>[0];

/** The API on a free port of loopback; whoever starts it closes it. */
export async function startedApi(options: Options): Promise<RunningApi> {
  const api = await startApi({ port: 0, log: SILENT, ...options });
  if (!api.ok) throw new Error(api.error.message);
  return api.value;
}

/** The same for all tests of a file or a describe: it runs from its beforeAll, where it is called, to its end. */
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
