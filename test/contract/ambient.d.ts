/** Modules that vite and the Workers pool give to tests, as far as these use them. */
declare module "*?raw" {
  const text: string;
  export default text;
}
declare module "cloudflare:test" {
  type WorkerEnv = import("../../api/worker.ts").WorkerEnv;
  export const env: WorkerEnv & {
    readonly MIGRATIONS: readonly unknown[];
    readonly MOVED: WorkerEnv["DB"];
    readonly SWEPT: WorkerEnv["DB"];
    readonly UNMIGRATED: WorkerEnv["DB"];
  };
  export const SELF: { fetch(url: string, init?: RequestInit): Promise<Response> };
  export function applyD1Migrations(database: unknown, migrations: readonly unknown[]): Promise<void>;
}
