import { asAnother, deletedAt, type MadePod, madePod, resized, withImage } from "./pods-made.ts";
import { addToSource, anyOf, ask, type Event, imageOf, push, type Story, withdraw } from "./pods-story.ts";

/** Events that people and pods cause. */
export const EVENTS: Readonly<Record<string, Event>> = {
  "pods come": (s) => {
    for (let i = s.d.below(3); i >= 0; i--)
      ask(
        s,
        madePod(s.d, ++s.pods, () => imageOf(s), false),
      );
    return true;
  },
  "more pods come": (s) =>
    ask(
      s,
      madePod(s.d, ++s.pods, () => imageOf(s), false),
    ),
  "a critical pod comes": (s) =>
    ask(
      s,
      madePod(s.d, ++s.pods, () => imageOf(s), true),
    ),
  "a pod goes": (s) => {
    const one = anyOf(s);
    return one !== null && withdraw(s, one.uid);
  },
  "pods go": (s) => {
    for (const uid of [...s.wanted.keys()]) if (s.d.chance(2)) withdraw(s, uid);
    return true;
  },
  "a pod's end is asked for": (s) => {
    const one = anyOf(s);
    if (one === null) return false;
    const at = new Date(s.node.time.nowMs()).toISOString();
    addToSource(s, deletedAt(one, at, s.d.pick([0, 1, 20])));
    s.wanted.delete(one.uid);
    return true;
  },
  "a pod gets another image": (s) => {
    const one = anyOf(s);
    return one !== null && ask(s, withImage(one, imageOf(s)));
  },
  "a pod is resized": (s) => {
    const isLiving = ({ uid }: MadePod) => s.node.daemon?.manager.set.get(uid)?.record.state === "active";
    const living = [...s.wanted.values()].filter(isLiving).flatMap((one) => resized(one, s.d) ?? []);
    return living.length > 0 && ask(s, s.d.pick(living));
  },
  "a container eats the memory": ({ node, made, d }) => {
    const running = node.runtime.ownContainers.filter(
      ({ state, sandbox }) => state === "running" && made.get(sandbox.metadata.uid)?.isCritical === false,
    );
    if (running.length === 0) return false;
    node.memory.eaters.add(d.pick(running).id);
    return true;
  },
  "a manifest is edited": (s) => {
    const one = anyOf(s);
    if (one === null) return false;
    withdraw(s, one.uid);
    return ask(s, asAnother(one, `u${String(++s.pods).padStart(4, "0")}`));
  },
  "a container exits": (s) => {
    const running = s.node.runtime.ownContainers.filter(({ state }) => state === "running");
    if (running.length === 0) return false;
    s.node.runtime.exit(s.d.pick(running).id, s.d.pick([0, 1, 137]));
    return true;
  },
  "a sandbox dies": (s) => sandboxDies(s, () => true),
  "a job's sandbox dies": (s) => sandboxDies(s, ({ isJob }) => isJob),
  "an image that was missing is pushed": (s) => push(s),
};

/** Ends the sandbox of one of the matching pods, with everything that runs in it. */
function sandboxDies({ node: { runtime }, made, d }: Story, isOne: (pod: MadePod) => boolean): boolean {
  const ready = [...runtime.sandboxes.values()].filter(({ isReady, config }) => {
    const pod = made.get(config.metadata.uid);
    return isReady && pod !== undefined && isOne(pod);
  });
  if (ready.length === 0) return false;
  const one = d.pick(ready);
  for (const c of runtime.ownContainers) if (c.sandboxId === one.id) runtime.exit(c.id, 137);
  one.isReady = false;
  runtime.dropSandboxCgroup(one);
  return true;
}
