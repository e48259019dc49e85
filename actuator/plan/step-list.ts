import { controllerOf } from "./cgroup-files.ts";
import type { Write } from "./changes.ts";
import type { CgroupState, ObservedCgroup } from "./state.ts";
import { nearestAncestor, parentOf, type Step, type Why } from "./step.ts";
import type { Target } from "./targets.ts";

/** Writes of one knob of one cgroup, before they have their place. */
export interface Draft {
  /** The object that the ids are numbered under. */
  readonly of: unknown;
  readonly path: string;
  readonly knob: string;
  readonly why: Why;
  readonly writes: readonly Write[];
  readonly group: string | null;
  readonly needs: readonly number[];
}

type Ids = readonly number[];

const depthOf = (draft: Draft): number => draft.path.split("/").length;
const keyOf = (draft: Draft, path = draft.path): string => `${draft.knob} ${path}`;

/** Steps in their final order; each call appends one phase. */
export class StepList {
  readonly steps: Step[] = [];
  readonly #state: CgroupState;
  readonly #made = new Map<string, number>();
  readonly #removed = new Map<string, number[]>();
  readonly #text = new Map<string, string>();
  readonly #groups = new Map<string, number[]>();

  constructor(state: CgroupState) {
    this.#state = state;
  }

  /** Called leaves first. */
  remove({ path, identities }: ObservedCgroup): void {
    const id = this.steps.length;
    this.steps.push({ id, op: "rmdir", path, why: "orphan", identities, needs: this.#removed.get(path) ?? [] });
    const parent = parentOf(path) ?? "";
    this.#removed.set(parent, [...(this.#removed.get(parent) ?? []), id]);
  }

  /** Called parents first. */
  create({ path, observed }: Target): void {
    const controllers = observed === null ? this.#state.controllers : observed.lacks;
    if (observed !== null && controllers.length === 0) return;
    const id = this.steps.length;
    const above = nearestAncestor(path, (up) => this.#made.has(up));
    const needs = above === null ? [] : [this.#made.get(above) ?? id];
    const fresh = observed === null;
    this.steps.push({ id, op: "mkdir", path, why: fresh ? "create" : "complete", controllers, fresh, needs });
    this.#made.set(path, id);
  }

  /** Each write waits for the nearest ancestor's write of the same knob; what has no order does not. Given parents first. */
  topDown(drafts: readonly Draft[]): ReadonlyMap<unknown, Ids> {
    const ids = new Map<unknown, Ids>();
    const done = new Map<string, Ids>();
    for (const draft of drafts) {
      const above = draft.why === "set" ? null : nearestAncestor(draft.path, (up) => done.has(keyOf(draft, up)));
      const needs = above === null ? [] : (done.get(keyOf(draft, above)) ?? []);
      const own = this.#write(draft, needs);
      ids.set(draft.of, own);
      done.set(keyOf(draft), own);
    }
    return ids;
  }

  /** Each write waits for the nearest descendants' writes of the same knob. The order among one depth is kept. */
  bottomUp(drafts: readonly Draft[]): ReadonlyMap<unknown, Ids> {
    const ids = new Map<unknown, Ids>();
    const members = new Set(drafts.map((draft) => keyOf(draft)));
    const waiting = new Map<string, number[]>();
    for (const draft of drafts.toSorted((a, b) => depthOf(b) - depthOf(a))) {
      const written = this.#write(draft, waiting.get(keyOf(draft)) ?? []);
      const own = written.length > 0 ? written : [...draft.needs, ...(waiting.get(keyOf(draft)) ?? [])];
      ids.set(draft.of, own);
      const above = nearestAncestor(draft.path, (up) => members.has(keyOf(draft, up)));
      if (above !== null) waiting.set(keyOf(draft, above), [...(waiting.get(keyOf(draft, above)) ?? []), ...own]);
    }
    return ids;
  }

  #write(draft: Draft, others: Ids): Ids {
    const ids: number[] = [];
    const observed = this.#state.cgroups[draft.path];
    const made = this.#made.get(draft.path);
    const before = [...(made === undefined ? [] : [made]), ...draft.needs, ...others];
    const inGroup = draft.group === null ? [] : (this.#groups.get(draft.group) ?? []);
    for (const { file, to } of draft.writes) {
      const id = this.steps.length;
      const from = this.#text.get(`${draft.path} ${file}`) ?? observed?.files[file] ?? null;
      const needs = [...new Set([...before, ...inGroup, ...ids])].sort((a, b) => a - b);
      const identity = observed?.identities[controllerOf(file)] ?? null;
      const { path, why, group } = draft;
      this.steps.push({ id, op: "write", path, file, from, to, why, identity, group, needs });
      this.#text.set(`${path} ${file}`, to);
      ids.push(id);
    }
    if (draft.group !== null) this.#groups.set(draft.group, [...inGroup, ...ids]);
    return ids;
  }
}
