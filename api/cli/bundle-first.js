import { config } from "zod";

// The first module of the bundle, before any schema is made: compiled checks of snapshots take 2 MB, and save a daemon's pass
// of each minute some 15 ms.
config({ jitless: true });
