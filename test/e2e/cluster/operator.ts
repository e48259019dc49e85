import { dirname } from "node:path";
import { parseAllDocuments } from "yaml";
import type { PodExplanation } from "../../../api/model/why.ts";
import { pluginIn, type Ran, run } from "../../cli/run.ts";
import type { Manifest } from "./apply.ts";
import type { SeenPod } from "./scenes.ts";

/** A user with a kubeconfig and the command line. */
export class Operator {
  readonly #kubeconfig: string;

  constructor(kubeconfig: string) {
    this.#kubeconfig = kubeconfig;
  }
  nodewise(...args: readonly string[]): Promise<Ran> {
    return run([...args, "--kubeconfig", this.#kubeconfig]);
  }
  /** Runs the plugin as `kubectl nodewise` starts it. */
  plugin(...args: readonly string[]): Promise<Ran> {
    const launcher = pluginIn(dirname(this.#kubeconfig));
    return run(args, { launcher, env: { KUBECONFIG: this.#kubeconfig } });
  }
  /** The JSON that a command prints; throws the text of standard error if the command fails. */
  async json<T>(...args: readonly string[]): Promise<T> {
    const { stdout, stderr } = await this.nodewise(...args, "-o", "json");
    if (stderr !== "") throw new Error(`nodewise ${args.join(" ")}: ${stderr}`);
    return JSON.parse(stdout) as T;
  }

  /** The explanation of a pod as data, from kubectl's plugin. */
  async story({ metadata: { namespace, name } }: SeenPod): Promise<PodExplanation> {
    return JSON.parse(reportOf(await this.plugin("why", name, "-n", namespace, "-o", "json"))) as PodExplanation;
  }
  /** The explanation of a pod as text, from the standalone command. */
  async storyText({ metadata: { namespace, name } }: SeenPod): Promise<string> {
    return reportOf(await this.nodewise("why", `${namespace}/${name}`, "--context", "test"));
  }
}

/** The output of `why` for a pod with a problem; throws the text of standard error otherwise. */
function reportOf({ code, stdout, stderr }: Ran): string {
  if (code !== 1 || stderr !== "") throw new Error(`why ends with ${code}: ${stderr}`);
  return stdout;
}

/** The objects that a message about missing rights asks the user to apply. */
export function rightsIn({ stderr }: Ran): readonly Manifest[] {
  const [yaml = ""] = /^apiVersion:[\s\S]*?(?=^nodewise:|$(?![\s\S]))/m.exec(stderr) ?? [];
  return parseAllDocuments(yaml).map((document) => document.toJS() as Manifest);
}
