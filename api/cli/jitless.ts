import { config } from "zod";

// Imported before any module that makes a schema: compiled checks of snapshots take 2 MB, and save a daemon's pass of each
// minute some 15 ms.
config({ jitless: true });
