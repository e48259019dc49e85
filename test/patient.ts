/** Timeouts for a slow and loaded machine: vitest's default of one second is too short for a file or a process. */
export const PATIENT = { timeout: 30_000, interval: 20 } as const;
