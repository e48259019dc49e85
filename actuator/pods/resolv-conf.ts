/** What a pod's /etc/resolv.conf says; as CRI has it. */
export interface ResolvConf {
  readonly servers: readonly string[];
  readonly searches: readonly string[];
  /** `ndots:5` */
  readonly options: readonly string[];
}

/**
 * The text of a resolv.conf(5): name servers add up, the last search list counts, of options with one name the last.
 * Errors are the lines without what they need. kubelet 1.36: parseResolvConf.
 */
export function parseResolvConf(text: string): { readonly conf: ResolvConf; readonly errors: readonly string[] } {
  const servers: string[] = [];
  let searches: readonly string[] = [];
  const options = new Map<string, string>();
  const errors: string[] = [];
  for (const line of text.split("\n")) {
    const [word, ...values] = line.trim().split(/\s+/);
    if (word === "nameserver") {
      if (values[0] === undefined) errors.push("nameserver list is empty ");
      else servers.push(values[0]);
    }
    if (word === "search") searches = values.filter((v) => v !== ".").map((v) => v.replace(/\.$/, ""));
    if (word === "options") for (const option of values) options.set(option.split(":")[0] as string, option);
  }
  return { conf: { servers, searches, options: [...options.values()] }, errors };
}
