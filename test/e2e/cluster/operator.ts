import { dirname } from "node:path";
import { parseAllDocuments } from "yaml";
import type { Story } from "../../../api/model/why.ts";
import { pluginIn, type Ran, run } from "../../cli/run.ts";
import type { Manifest } from "./apply.ts";
import type { SeenPod } from "./scenes.ts";

/** A pod's story as data, and as people read it. */
export interface ToldStory {
  readonly story: Story;
  readonly text: string;
}

/** Somebody with a kubeconfig and the command line. */
export class Operator {
  readonly #kubeconfig: string;

  constructor(kubeconfig: string) {
    this.#kubeconfig = kubeconfig;
  }
  nodewise(...args: readonly string[]): Promise<Ran> {
    return run([...args, "--kubeconfig", this.#kubeconfig]);
  }
  /** As `kubectl nodewise` starts it. */
  plugin(...args: readonly string[]): Promise<Ran> {
    const launcher = pluginIn(dirname(this.#kubeconfig));
    return run(args, { launcher, env: { KUBECONFIG: this.#kubeconfig } });
  }
  /** What a command prints as JSON; throws what it says on standard error. */
  async json<T>(...args: readonly string[]): Promise<T> {
    const { stdout, stderr } = await this.nodewise(...args, "-o", "json");
    if (stderr !== "") throw new Error(`nodewise ${args.join(" ")}: ${stderr}`);
    return JSON.parse(stdout) as T;
  }

  /** As data from the command of its own, and as text from kubectl's plugin. */
  async why({ metadata: { namespace, name } }: SeenPod): Promise<ToldStory> {
    const [story, { code, stdout, stderr }] = await Promise.all([
      this.json<Story>("why", `${namespace}/${name}`, "--context", "test"),
      this.plugin("why", name, "-n", namespace),
    ]);
    if (code !== 1 || stderr !== "") throw new Error(`kubectl nodewise why ${name}: ${code} ${stderr}`);
    return { story, text: stdout };
  }
}

/** The objects that a message about missing rights tells to apply. */
export function rightsIn({ stderr }: Ran): readonly Manifest[] {
  const [yaml = ""] = /^apiVersion:[\s\S]*?(?=^nodewise:|$(?![\s\S]))/m.exec(stderr) ?? [];
  return parseAllDocuments(yaml).map((document) => document.toJS() as Manifest);
}
