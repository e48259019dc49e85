/**
 * Loaded before anything else of a daemon whose settings file is read again at SIGHUP: one that comes before that file was
 * read for the first time asks for nothing more, and must not end the process.
 */
process.on("SIGHUP", () => {});
