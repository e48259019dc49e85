const isDigit = (code: number): boolean => code >= 48 && code <= 57;

/** Where the run of digits that starts at `from` ends. */
function digitsEnd(s: string, from: number): number {
  let i = from;
  while (isDigit(s.charCodeAt(i))) i++;
  return i;
}
const afterZeros = (s: string, from: number, end: number): number => {
  let i = from;
  while (i < end - 1 && s.charCodeAt(i) === 48) i++;
  return i;
};

/** Compares the runs of digits at i and j as numbers of any length. */
function compareDigits(a: string, i: number, aEnd: number, b: string, j: number, bEnd: number): number {
  const aStart = afterZeros(a, i, aEnd);
  const bStart = afterZeros(b, j, bEnd);
  if (aEnd - aStart !== bEnd - bStart) return aEnd - aStart - (bEnd - bStart);
  for (let k = 0; k < aEnd - aStart; k++) {
    const difference = a.charCodeAt(aStart + k) - b.charCodeAt(bStart + k);
    if (difference !== 0) return difference;
  }
  return 0;
}

/**
 * The natural order of ids: runs of digits compare as numbers (`gpu-2` before `gpu-10`), everything else by character
 * code, and otherwise equal ids (`a1`, `a01`) as texts. It is a total order, used wherever the kubelet follows a Go
 * map.
 */
export function naturalOrder(a: string, b: string): number {
  const shorter = Math.min(a.length, b.length);
  let i = 0;
  while (i < shorter && a.charCodeAt(i) === b.charCodeAt(i)) i++;
  if (i === a.length && i === b.length) return 0;
  const difference = a.charCodeAt(i) - b.charCodeAt(i);
  // within runs of digits of one length the first difference decides, as it does between numbers
  if (isDigit(a.charCodeAt(i)) && isDigit(b.charCodeAt(i)) && digitsEnd(a, i) === digitsEnd(b, i)) return difference;
  // the run of digits that holds the first difference; what is before it is the same in both
  while (i > 0 && isDigit(a.charCodeAt(i - 1))) i--;
  return fromRun(a, i, b, i) || (a < b ? -1 : 1);
}

/** Compares what starts at i and j, neither within a run of digits; 0: only leading zeros differ. */
function fromRun(a: string, start: number, b: string, from: number): number {
  let i = start;
  let j = from;
  while (i < a.length && j < b.length) {
    const x = a.charCodeAt(i);
    const y = b.charCodeAt(j);
    if (isDigit(x) && isDigit(y)) {
      const aEnd = digitsEnd(a, i);
      const bEnd = digitsEnd(b, j);
      const difference = compareDigits(a, i, aEnd, b, j, bEnd);
      if (difference !== 0) return difference;
      i = aEnd;
      j = bEnd;
    } else if (x !== y) {
      return x - y;
    } else {
      i++;
      j++;
    }
  }
  return a.length - i - (b.length - j);
}
