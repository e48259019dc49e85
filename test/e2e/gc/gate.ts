/** Holds up what comes while it is shut. */
export class Gate {
  #opened: PromiseWithResolvers<void> | null = null;
  #came: PromiseWithResolvers<void> = Promise.withResolvers();

  /** Shuts it, and resolves when the first one stands before it. */
  shut(): Promise<void> {
    this.#opened ??= Promise.withResolvers();
    this.#came = Promise.withResolvers();
    return this.#came.promise;
  }
  open(): void {
    this.#opened?.resolve();
    this.#opened = null;
  }
  /** For those who come. */
  async pass(): Promise<void> {
    if (this.#opened === null) return;
    this.#came.resolve();
    await this.#opened.promise;
  }
}
