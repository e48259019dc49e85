/** The part of the Workers runtime's module that is used here. */
declare module "cloudflare:workers" {
  import type { DurableObjectState } from "@cloudflare/workers-types";
  export abstract class DurableObject<Env> {
    protected readonly ctx: DurableObjectState;
    protected readonly env: Env;
    constructor(ctx: DurableObjectState, env: Env);
  }
}
