const PART = /^([A-Za-z0-9][-A-Za-z0-9_.]{0,61})?[A-Za-z0-9]$/;
const DNS_SUBDOMAIN = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/;

/** The part after the slash of a label's or a resource's name, at most 63 characters. kubernetes 1.36: IsQualifiedName. */
export const isNamePart = (text: string): boolean => PART.test(text);
/** kubernetes 1.36: IsDNS1123Subdomain. */
export const isDnsSubdomain = (text: string): boolean => text.length <= 253 && DNS_SUBDOMAIN.test(text);
