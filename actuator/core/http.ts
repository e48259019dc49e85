// An `import` of these modules asks for each of their names, one of which loads all of `fetch`: some MB of a small daemon.
export const http = process.getBuiltinModule("node:http");
export const https = process.getBuiltinModule("node:https");
