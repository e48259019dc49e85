/** A file that wrangler.toml names as text is imported as its text. */
declare module "*.css" {
  const text: string;
  export default text;
}
declare module "*/client/lint.js" {
  const text: string;
  export default text;
}
declare module "*/client/live.js" {
  const text: string;
  export default text;
}
declare module "*/client/page.js" {
  const text: string;
  export default text;
}
declare module "*/client/plots.js" {
  const text: string;
  export default text;
}
declare module "*/client/replay.js" {
  const text: string;
  export default text;
}
declare module "*/client/sizes.js" {
  const text: string;
  export default text;
}
declare module "*/client/upgrade.js" {
  const text: string;
  export default text;
}
declare module "*/client/what-if.js" {
  const text: string;
  export default text;
}
declare module "uplot/dist/uPlot.iife.min.js" {
  const text: string;
  export default text;
}
declare module "*.sql" {
  const text: string;
  export default text;
}
