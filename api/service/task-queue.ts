/** Yields to everything else that waits, on every platform. */
export const yieldToEventLoop = (): Promise<void> =>
  new Promise((resolve) => {
    if (typeof setImmediate === "function") setImmediate(resolve);
    else setTimeout(resolve, 0);
  });

/** The longest that work runs, plus one piece, before it yields, ms. */
export const TIME_SLICE_MS = 10;

/** Runs pieces of work in turn. `isOfMany`: the work is part of a batch, and every other turn goes to other work. */
export type TaskQueue = <T>(work: () => Promise<T>, isOfMany: boolean) => Promise<T>;

export function taskQueue(): TaskQueue {
  const [single, ofMany]: [Task[], Task[]] = [[], []];
  let isWorking = false;
  let began = 0;
  let last = false;
  const next = (): Task | undefined => {
    last = !last;
    return last ? (single.shift() ?? ofMany.shift()) : (ofMany.shift() ?? single.shift());
  };
  const workOff = async (): Promise<void> => {
    isWorking = true;
    for (let work = next(); work !== undefined; work = next()) {
      if (performance.now() - began >= TIME_SLICE_MS) {
        await yieldToEventLoop();
        began = performance.now();
      }
      await work();
    }
    isWorking = false;
  };
  return (work, isOfMany) =>
    new Promise((resolve, reject) => {
      (isOfMany ? ofMany : single).push(() => work().then(resolve, reject));
      if (!isWorking) void workOff();
    });
}

type Task = () => Promise<void>;
