import type { AnsweredQuestion, PreferredQuestion } from "../../../api/decide/devices/preferred.ts";
import type { DevicePlugin } from "../../../api/model/devices.ts";
import type { DevicePluginHost } from "../../deviceplugin/host.ts";
import { goText } from "./words.ts";

/** Each answer may change what is asked next; after these the natural order of ids decides. */
const MOST_ROUNDS = 3;
/** Pods that were never forgotten: the oldest are. */
const MOST_PODS = 1024;
/** Of a resource, in a snapshot. */
const MOST_ANSWERS = 1024;

/** What was asked about a pod since it was last asked whether it may come in. */
interface PodQuestions {
  rounds: number;
  open: number;
  /** More was asked since the answers were last told: else the pod was decided about, and a new try begins. */
  isAsked: boolean;
  /** By their text; null: it is being asked. */
  readonly answers: Map<string, AnsweredQuestion | null>;
}
const keyOf = (q: PreferredQuestion): string => JSON.stringify([q.resource, q.size, q.available, q.mustInclude]);

/** What plugins prefer, asked in the background and kept until the pod is in. kubelet 1.36: callGetPreferredAllocationIfAvailable. */
export class Questions {
  readonly #host: Pick<DevicePluginHost, "preferred">;
  readonly #pods = new Map<string, PodQuestions>();
  readonly #failed = new Set<string>();
  /** All that was asked about a pod at a time is answered. */
  readonly #onAnswered: () => void;

  constructor(host: Pick<DevicePluginHost, "preferred">, onAnswered: () => void) {
    this.#host = host;
    this.#onAnswered = onAnswered;
  }

  /** Each question once a try. False: nothing is under way, and nothing more is asked. */
  ask(podUid: string, questions: readonly PreferredQuestion[]): boolean {
    const pod = this.#pods.get(podUid) ?? { rounds: 0, open: 0, isAsked: false, answers: new Map() };
    this.#pods.set(podUid, pod);
    if (this.#pods.size > MOST_PODS) this.#pods.delete([...this.#pods.keys()][0] as string);
    const fresh = questions.filter((question) => !pod.answers.has(keyOf(question)));
    if (fresh.length > 0 && pod.rounds < MOST_ROUNDS) {
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
  /** What was asked last about the pod met an error. */
  hasFailed(podUid: string): boolean {
    return this.#failed.has(podUid);
  }

  /** `devicePlugins` of a snapshot with what was answered about the pod. */
  told(plugins: readonly DevicePlugin[], podUid: string | undefined): readonly DevicePlugin[] {
    const pod = podUid === undefined ? undefined : this.#pods.get(podUid);
    if (podUid !== undefined && pod === undefined) this.#failed.delete(podUid);
    if (podUid === undefined || pod === undefined) return plugins;
    // other devices are free by now, and a call that failed may not fail again
    if (!pod.isAsked && pod.open === 0) this.#pods.delete(podUid);
    const answers = pod.isAsked ? [...pod.answers.values()].filter((answer) => answer !== null) : [];
    pod.isAsked = false;
    if (answers.some(({ error }) => error !== undefined)) this.#failed.add(podUid);
    else this.#failed.delete(podUid);
    if (this.#failed.size > MOST_PODS) this.#failed.delete([...this.#failed][0] as string);
    if (answers.length === 0) return plugins;
    return plugins.map((plugin) => {
      const its = answers.filter(({ resource }) => resource === plugin.resource).slice(0, MOST_ANSWERS);
      return its.length === 0 ? plugin : { ...plugin, preferred: its.map(preferredOf) };
    });
  }

  async #put(pod: PodQuestions, question: PreferredQuestion): Promise<void> {
    const { resource, available, mustInclude, size } = question;
    const key = keyOf(question);
    if (pod.answers.has(key)) return;
    pod.answers.set(key, null);
    pod.open++;
    const answer = await this.#host.preferred(resource, { available, mustInclude, size });
    // one that offers nothing prefers nothing
    const said = answer.ok ? { deviceIds: answer.value ?? [] } : { error: goText(answer.error) };
    pod.answers.set(key, { ...question, ...said });
    pod.open--;
    if (pod.open === 0) this.#onAnswered();
  }
}

type Preferred = NonNullable<DevicePlugin["preferred"]>[number];
const preferredOf = ({ available, mustInclude, size, deviceIds, error }: AnsweredQuestion): Preferred => ({
  available: [...available],
  mustInclude: [...mustInclude],
  size,
  ...(deviceIds === undefined ? {} : { deviceIds: [...deviceIds] }),
  ...(error === undefined ? {} : { error }),
});
