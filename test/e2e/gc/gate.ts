/** Holds up its callers while it is shut. */
export class Gate {
  #opened: PromiseWithResolvers<void> | null = null;
  #came: PromiseWithResolvers<void> = Promise.withResolvers();

  /** Shuts the gate, and resolves when the first caller arrives at it. */
  shut(): Promise<void> {
    this.#opened ??= Promise.withResolvers();
    this.#came = Promise.withResolvers();
    return this.#came.promise;
  }
  open(): void {
    this.#opened?.resolve();
    this.#opened = null;
  }
  /** Resolves at once while the gate is open, otherwise when it opens. */
  async pass(): Promise<void> {
    if (this.#opened === null) return;
    this.#came.resolve();
    await this.#opened.promise;
  }
}
