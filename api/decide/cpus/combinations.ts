/**
 * Visits every choice of `size` of the list, in lexicographic order, until `visit` returns true.
 *
 * INVARIANT: a list that `visit` keeps may change under it later, exactly as in the kubelet: Go's `append` writes into a
 * list that has room, and lists have room up to the next power of two. A kept choice of four so ends as its first three
 * and the last fourth that was tried, and the kubelet allocates from that. kubelet 1.36: iterateCombinations.
 */
export function combinations(
  list: readonly number[],
  size: number,
  visit: (choice: readonly number[]) => boolean,
): void {
  const extend = (start: number, chosen: number[], length: number): boolean => {
    if (length === size) return visit(chosen);
    for (let i = start; i <= list.length - (size - length); i++) {
      if (extend(i + 1, append(chosen, length, list[i] as number), length + 1)) return true;
    }
    return false;
  };
  if (size > 0) extend(0, [], 0);
}

/** Go's `append` to the first `length` of the list. */
function append(chosen: number[], length: number, value: number): number[] {
  const isFull = (length & (length - 1)) === 0;
  const room = isFull ? chosen.slice(0, length) : chosen;
  room[length] = value;
  return room;
}
