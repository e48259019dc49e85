import { config } from "zod";

// Imported before any module that creates a schema: compiled validation of snapshots takes 2 MB, and saves only some 15 ms per
// minute of a daemon.
config({ jitless: true });
