/** A machine that is slow and loaded takes long: vitest's own second is too short for a file or a process to get there. */
export const PATIENT = { timeout: 30_000, interval: 20 } as const;
