/**
 * Modules that test/module-hooks.ts, the bundle of the Worker's tests and the Workers pool provide to tests, with only
 * the members that the tests use.
 */
declare module "*?raw" {
  const text: string;
  export default text;
}
declare module "cloudflare:test" {
  type WorkerEnv = import("../../api/worker/settings.ts").WorkerEnv;
  export const env: WorkerEnv & {
    readonly MIGRATIONS: readonly unknown[];
    readonly MOVED: WorkerEnv["DB"];
    readonly SWEPT: WorkerEnv["DB"];
    readonly UNMIGRATED: WorkerEnv["DB"];
    readonly OBJECTS: Namespace;
  };
  type Namespace = NonNullable<WorkerEnv["NODES"]>;
  type Stub = ReturnType<Namespace["get"]>;
  type State = import("@cloudflare/workers-types").DurableObjectState;
  type NodeObject = import("../../api/worker/node-object.ts").NodeObject;
  export function runInDurableObject<T>(
    stub: Stub,
    work: (object: NodeObject, state: State) => T | Promise<T>,
  ): Promise<T>;
  export function runDurableObjectAlarm(stub: Stub): Promise<boolean>;
  export function evictDurableObject(stub: Stub): Promise<void>;
  export const SELF: { fetch(url: string, init?: RequestInit): Promise<Response> };
  export function applyD1Migrations(database: unknown, migrations: readonly unknown[]): Promise<void>;
}
