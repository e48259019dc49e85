/** What the kubelet's probe workers do that users report as bugs; `strict` says what that option does instead. */
export interface Quirk {
  readonly code: string;
  readonly what: string;
  /** Of kubernetes/kubernetes. */
  readonly issues: readonly number[];
  /** Null: what it does is what is documented, or nothing is. */
  readonly strict: string | null;
}

/** In the order in which a worker meets them. kubelet 1.36: prober.manager, prober.worker, prober.prober. */
export const QUIRKS = [
  {
    code: "later-containers-unprobed",
    what: "when a pod is added again, the first container that is probed already ends the loop: containers after it get no workers",
    issues: [],
    strict: null,
  },
  {
    code: "ticks-together",
    what: "probes are spread by chance only right after the kubelet's start; later all workers of a pod probe at the same moment",
    issues: [],
    strict: null,
  },
  {
    code: "sleep-ignores-stop",
    what: "a worker that is stopped in its start jitter sleeps on, and may still probe once",
    issues: [],
    strict: "it ends at once",
  },
  {
    code: "counters-carry-over",
    what: "a new container keeps the run of equal results of the old one, so its first answers can reach a threshold too soon",
    issues: [53530, 46371, 62853],
    strict: "a new container starts with no run",
  },
  {
    code: "hang-discarded",
    what: "an HTTP answer whose body breaks off or never ends is an error, not a failure: the threshold is not touched, liveness never fires",
    issues: [122591, 113938],
    strict: "after three tries it counts as a failure",
  },
  {
    code: "error-discarded",
    what: "when the container cannot be asked at all (the runtime's exec fails, no such port name) three tries are thrown away and the result stays as it was",
    issues: [106682],
    strict: "after three tries it counts as a failure",
  },
  {
    code: "readiness-out-of-turn",
    what: "readiness is probed out of turn each time the pod's status is made while the container is not ready, and its period starts anew",
    issues: [118815],
    strict: null,
  },
  {
    code: "ready-kept-on-restart",
    what: "when the kubelet restarts, containers started more than 10 s before keep their readiness unprobed; those started later are unready at once",
    issues: [100277],
    strict: null,
  },
] as const satisfies readonly Quirk[];
export type QuirkCode = (typeof QUIRKS)[number]["code"];
