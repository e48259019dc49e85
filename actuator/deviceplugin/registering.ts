import { type KnownPlugins, MOST_RESOURCES } from "./known-plugins.ts";

const MOST_REGISTERING = 128;

/** The registrations that are under way. */
export class Registering {
  readonly #open = new Set<{ readonly resource: string }>();

  /** Why one more cannot begin; undefined: it can. */
  whyNot(resource: string, known: KnownPlugins): string | undefined {
    if (!known.makesRoom(resource, this.#open.size)) {
      return `\`${resource}\` is one resource too many: device plugins have ${MOST_RESOURCES} already, the most that a node takes`;
    }
    return this.#open.size >= MOST_REGISTERING ? `${MOST_REGISTERING} plugins are registering already` : undefined;
  }
  get count(): number {
    return this.#open.size;
  }
  has(resource: string): boolean {
    return [...this.#open].some((registration) => registration.resource === resource);
  }
  async during<T>(resource: string, work: () => Promise<T>): Promise<T> {
    const registration = { resource };
    this.#open.add(registration);
    try {
      return await work();
    } finally {
      this.#open.delete(registration);
    }
  }
}
