import type { AnsweredRequest, PreferredAllocationRequest } from "../../../api/decide/devices/preferred.ts";
import type { DevicePlugin } from "../../../api/model/machine.ts";
import type { DevicePluginHost } from "../../deviceplugin/host.ts";
import { goText } from "./port.ts";

/** Each answer may lead to new questions; after this many rounds the natural order of ids decides. */
const MAX_ROUNDS = 3;
/** The maximum number of pods; the oldest are dropped. */
const MAX_PODS = 1024;
/** The maximum number of answers for one resource in a snapshot. */
const MAX_ANSWERS = 1024;

/** The questions about a pod for one admission. */
interface PodRequests {
  rounds: number;
  open: number;
  /** True: questions were asked since the last decision; otherwise the next try starts over. */
  isAsked: boolean;
  /** The answers by question; null: the question is open. */
  readonly answers: Map<string, AnsweredRequest | null>;
}
const keyOf = (q: PreferredAllocationRequest): string =>
  JSON.stringify([q.resource, q.size, q.available, q.mustInclude]);

/**
 * Plugins' preferences, asked in the background and kept until the pod is admitted. kubelet 1.36:
 * callGetPreferredAllocationIfAvailable.
 */
export class PreferredAllocationRequests {
  readonly #host: Pick<DevicePluginHost, "preferred">;
  readonly #pods = new Map<string, PodRequests>();
  readonly #failed = new Set<string>();
  /** Called when all open questions about a pod are answered. */
  readonly #onAnswered: () => void;

  constructor(host: Pick<DevicePluginHost, "preferred">, onAnswered: () => void) {
    this.#host = host;
    this.#onAnswered = onAnswered;
  }

  /** Asks each question once per try. False: nothing is open, and nothing new is asked. */
  ask(podUid: string, questions: readonly PreferredAllocationRequest[]): boolean {
    const pod = this.#pods.get(podUid) ?? { rounds: 0, open: 0, isAsked: false, answers: new Map() };
    this.#pods.set(podUid, pod);
    if (this.#pods.size > MAX_PODS) this.#pods.delete([...this.#pods.keys()][0] as string);
    const fresh = questions.filter((question) => !pod.answers.has(keyOf(question)));
    if (fresh.length > 0 && pod.rounds < MAX_ROUNDS) {
      pod.rounds++;
      for (const question of fresh) void this.#put(pod, question);
    }
    pod.isAsked = pod.open > 0;
    return pod.isAsked;
  }

  forget(podUid: string): void {
    this.#pods.delete(podUid);
    this.#failed.delete(podUid);
  }
  /** Whether the last question about the pod failed. */
  hasFailed(podUid: string): boolean {
    return this.#failed.has(podUid);
  }

  /** `devicePlugins` of a snapshot, with the answers about the pod. */
  withPreferred(plugins: readonly DevicePlugin[], podUid: string | undefined): readonly DevicePlugin[] {
    const pod = podUid === undefined ? undefined : this.#pods.get(podUid);
    if (podUid !== undefined && pod === undefined) this.#failed.delete(podUid);
    if (podUid === undefined || pod === undefined) return plugins;
    // a new try asks again: other devices may be free by now, and a failed call may succeed
    if (!pod.isAsked && pod.open === 0) this.#pods.delete(podUid);
    const answers = pod.isAsked ? [...pod.answers.values()].filter((answer) => answer !== null) : [];
    pod.isAsked = false;
    if (answers.some(({ error }) => error !== undefined)) this.#failed.add(podUid);
    else this.#failed.delete(podUid);
    if (this.#failed.size > MAX_PODS) this.#failed.delete([...this.#failed][0] as string);
    if (answers.length === 0) return plugins;
    return plugins.map((plugin) => {
      const its = answers.filter(({ resource }) => resource === plugin.resource).slice(0, MAX_ANSWERS);
      return its.length === 0 ? plugin : { ...plugin, preferred: its.map(preferredOf) };
    });
  }

  async #put(pod: PodRequests, question: PreferredAllocationRequest): Promise<void> {
    const { resource, available, mustInclude, size } = question;
    const key = keyOf(question);
    if (pod.answers.has(key)) return;
    pod.answers.set(key, null);
    pod.open++;
    const answer = await this.#host.preferred(resource, { available, mustInclude, size });
    // a plugin without the option has no preference
    const said = answer.ok ? { deviceIds: answer.value ?? [] } : { error: goText(answer.error) };
    pod.answers.set(key, { ...question, ...said });
    pod.open--;
    if (pod.open === 0) this.#onAnswered();
  }
}

type Preferred = NonNullable<DevicePlugin["preferred"]>[number];
const preferredOf = ({ available, mustInclude, size, deviceIds, error }: AnsweredRequest): Preferred => ({
  available: [...available],
  mustInclude: [...mustInclude],
  size,
  ...(deviceIds === undefined ? {} : { deviceIds: [...deviceIds] }),
  ...(error === undefined ? {} : { error }),
});
