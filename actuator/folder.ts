import { existsSync, mkdirSync } from "node:fs";
import { dirname } from "node:path";
import { type Disk, makeFolder } from "../api/model/make-folder.ts";

const DISK: Disk = { exists: existsSync, parentOf: dirname, make: (path) => mkdirSync(path, { mode: 0o700 }) };

/** Makes a folder, readable by this user only, and those above it. Throws what the system answers. */
export const ownFolder = (folder: string): void => makeFolder(folder, DISK);
