/** Apart from `node.ts`, so that who only names a store loads no driver. */
export { hasPassword, postgresSetting } from "../postgres/setting.ts";
