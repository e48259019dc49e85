import type { FieldValue } from "./field-value.ts";

const BYTE = "(?:25[0-5]|2[0-4]\\d|1\\d\\d|[1-9]?\\d)";
const v4 = new RegExp(`^${BYTE}(?:\\.${BYTE}){3}$`);

export const isIPv4 = (text: string): boolean => v4.test(text);
/** Whether a text is an IPv6 address without a zone, as Kubernetes requires. */
export const isIPv6 = (text: string): boolean => /^[0-9A-Fa-f:.]+$/.test(text) && URL.canParse(`http://[${text}]/`);

/** The API server's faults of an address; empty: none. */
export const ipAddress = (text: string): readonly string[] =>
  isIPv4(text) || isIPv6(text) ? [] : ["must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"];

/** The API server's faults of a name; empty: none. kubernetes 1.36: apimachinery/pkg/util/validation. */
type Validate = readonly string[];

const LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?";
const SUBDOMAIN = `${LABEL}(\\.${LABEL})*`;
const UNDERSCORED = "_?[a-z0-9]([-_a-z0-9]*[a-z0-9])?";
const SEARCH = `${UNDERSCORED}(\\.${UNDERSCORED})*`;
const KEY = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]";
const labelPattern = new RegExp(`^${LABEL}$`);
const subdomainPattern = new RegExp(`^${SUBDOMAIN}$`);
const searchPattern = new RegExp(`^${SEARCH}$`);
const keyPattern = new RegExp(`^${KEY}$`);
const valuePattern = new RegExp(`^(${KEY})?$`);

/** The unit in an error: the API server's two validation packages use different words. */
type Unit = "characters" | "bytes";
const tooLong = (most: number, unit: Unit = "characters"): string => `must be no more than ${most} ${unit}`;
const longer = (text: string, most: number, unit?: Unit): Validate => (text.length > most ? [tooLong(most, unit)] : []);
const pattern = (rule: string, regex: string, ...examples: readonly string[]): string =>
  `${rule} (e.g. ${examples.map((e) => `'${e}', `).join(" or ")}regex used for validation is '${regex}')`;

export function dnsLabel(name: string): Validate {
  const says = longer(name, 63);
  if (labelPattern.test(name)) return says;
  if (subdomainPattern.test(name)) return [...says, "must not contain dots"];
  const rule =
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character";
  return [...says, pattern(rule, LABEL, "my-name", "123-abc")];
}
export function dnsSubdomain(name: string, unit?: Unit): Validate {
  const says = longer(name, 253, unit);
  if (subdomainPattern.test(name)) return says;
  const rule =
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character";
  return [...says, pattern(rule, SUBDOMAIN, "example.com")];
}
/** A search domain may have underscores, and a dot at its end. */
export function dnsSearch(search: string): Validate {
  if (search === ".") return [];
  const name = search.replace(/\.$/, "");
  const says = longer(name, 253);
  if (searchPattern.test(name)) return says;
  const rule =
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '_', '-' or '.', and must start and end with an alphanumeric character";
  return [...says, pattern(rule, SEARCH, "example.com")];
}
export function portName(name: string): Validate {
  const says = [...longer(name, 15)];
  if (!/^[-a-z0-9]+$/.test(name)) {
    says.push("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)");
  }
  if (!/[a-z]/.test(name)) says.push("must contain at least one letter (a-z)");
  if (name.includes("--")) says.push("must not contain consecutive hyphens");
  if (name.startsWith("-") || name.endsWith("-")) says.push("must not begin or end with a hyphen");
  return says;
}
export const envName = (name: string): Validate =>
  /^[\x20-\x3c\x3e-\x7e]+$/.test(name)
    ? []
    : ["a valid environment variable name must consist only of printable ASCII characters other than '='"];
export const headerName = (name: string): Validate =>
  /^[-A-Za-z0-9]+$/.test(name)
    ? []
    : [pattern("a valid HTTP header must consist of alphanumeric characters or '-'", "[-A-Za-z0-9]+", "X-Header-Name")];

/** A key of labels and annotations, with or without a prefix. */
export function qualifiedName(key: string): Validate {
  const parts = key.split("/");
  const keyRule =
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character";
  const examples = ["MyName", "my.name", "123-abc"];
  if (parts.length > 2) {
    const rule = `a valid label key ${keyRule}`;
    return [
      `${pattern(rule, KEY, ...examples)} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')`,
    ];
  }
  const [prefix, name] = parts.length === 2 ? [parts[0] as string, parts[1] as string] : [undefined, key];
  const says: string[] = [];
  if (prefix === "") says.push("prefix part must be non-empty");
  else if (prefix !== undefined) says.push(...dnsSubdomain(prefix, "bytes").map((s) => `prefix part ${s}`));
  if (name === "") says.push("name part must be non-empty");
  else if (name.length > 63) says.push(`name part ${tooLong(63, "bytes")}`);
  if (!keyPattern.test(name)) says.push(`name part ${pattern(keyRule, KEY, ...examples)}`);
  return says;
}
export function labelValue(value: string): Validate {
  const says = longer(value, 63, "bytes");
  if (valuePattern.test(value)) return says;
  const rule =
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character";
  return [...says, pattern(rule, `(${KEY})?`, "MyValue", "my_value", "12345")];
}

/** A path that may not lead upwards. kubernetes 1.36: validatePathNoBacksteps. */
export function checkNoBacksteps(at: FieldValue): void {
  if (at.text().split("/").includes("..")) at.invalid("must not contain '..'");
}
/** kubernetes 1.36: validateLocalDescendingPath. */
export function checkDescending(at: FieldValue): void {
  if (at.text().startsWith("/")) at.invalid("must be a relative path");
  checkNoBacksteps(at);
}
