/** Separate from `node.ts`, so that code that only names a store loads no driver. */
export { hasPassword, postgresSetting } from "../postgres/setting.ts";
