// An `import` of these modules would read each export, one of which loads all of `fetch`: some MB in a small daemon.
export const http = process.getBuiltinModule("node:http");
export const https = process.getBuiltinModule("node:https");
