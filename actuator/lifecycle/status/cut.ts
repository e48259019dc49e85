import type { ContainerState, ContainerStatus } from "./status.ts";

/** Of all termination messages of a pod together. */
const MOST_BYTES = 12 * 1024;

/** Cuts each container's share of what a pod may say at its end. kubelet 1.36: normalizeStatus. */
export function cutMessages(statuses: readonly ContainerStatus[], containers: number): readonly ContainerStatus[] {
  const most = Math.trunc(MOST_BYTES / Math.max(1, containers));
  return statuses.map((s) => ({ ...s, state: cutState(s.state, most), lastState: cutState(s.lastState, most) }));
}

function cutState(state: ContainerState, most: number): ContainerState {
  const message = state.terminated?.message;
  if (state.terminated === undefined || message === undefined || message.length * 3 <= most) return state;
  return { terminated: { ...state.terminated, message: cutText(message, most) } };
}

/** The beginning of a text, in whole characters, of at most so many bytes of UTF-8. */
function cutText(text: string, most: number): string {
  const bytes = new TextEncoder().encode(text);
  if (bytes.length <= most) return text;
  return new TextDecoder().decode(bytes.subarray(0, most), { stream: true });
}
