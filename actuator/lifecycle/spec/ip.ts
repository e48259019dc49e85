const BYTE = "(?:25[0-5]|2[0-4]\\d|1\\d\\d|[1-9]?\\d)";
const v4 = new RegExp(`^${BYTE}(?:\\.${BYTE}){3}$`);

export const isIPv4 = (text: string): boolean => v4.test(text);
/** Without a zone, as Kubernetes takes it. */
export const isIPv6 = (text: string): boolean => /^[0-9A-Fa-f:.]+$/.test(text) && URL.canParse(`http://[${text}]/`);

/** What the API server says against an address; empty: nothing. */
export const ipAddress = (text: string): readonly string[] =>
  isIPv4(text) || isIPv6(text) ? [] : ["must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"];
