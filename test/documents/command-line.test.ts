import { expect, test } from "vitest";
import { readCommandLine } from "../../api/documents/command-line.ts";

const read = (text: string) => {
  const { args, unset } = readCommandLine(text);
  return { args: args.map((word) => word.text), lines: args.map(({ line }) => line), unset };
};

test.each<[string, string, readonly string[]]>([
  ["a command", "/usr/bin/kubelet --config=/a.yaml --v 2", ["--config=/a.yaml", "--v", "2"]],
  ["ps with its heading", "COMMAND\n/usr/bin/kubelet -v=2\n", ["-v=2"]],
  ["ps with more columns", "root  771  2.1  /usr/bin/kubelet --max-pods=5", ["--max-pods=5"]],
  ["/proc/PID/cmdline", "/usr/bin/kubelet\0--node-labels\0a=b c\0", ["--node-labels", "a=b c"]],
  ["quotes", `kubelet --a="b c" '--d=e f' --g=h\\ i --j="\\"k\\""`, ["--a=b c", "--d=e f", "--g=h i", '--j="k"']],
  ["a quote that does not end", 'kubelet --a="b c', ['--a="b', "c"]],
  ["lines that go on", "kubelet \\\n  --a \\\n  --b\n", ["--a", "--b"]],
  ["lines of Windows", "kubelet --a \\\r\n --b\r\n", ["--a", "--b"]],
  ["kubeadm-flags.env", 'KUBELET_KUBEADM_ARGS="--a=1 --b=2"\n', ["--a=1", "--b=2"]],
  ["a file of variables without quotes", "PATH=/bin\nKUBELET_EXTRA_ARGS=--a=1 --b=2\n", ["--a=1", "--b=2"]],
  ["what a shell exports", "export KUBELET_EXTRA_ARGS='--a=\"1 2\"'\n", ["--a=1 2"]],
  ["a variable that is set anew", "A=--a\nA=--b\n", ["--b"]],
  ["a configuration", "---\nmaxPods: 110\nclusterDNS:\n- 10.0.0.10\n", []],
  ["nothing", "", []],
  ["a comment", "# --a\n; --b\n[--c]\n", []],
])("the kubelet's arguments are read from %s", (_, text, args) => {
  expect(read(text).args).toEqual(args);
});

test("each argument has its line number, in quotes too", () => {
  expect(read('A="--a \\\n --b"\n--c \\\n --d').lines).toEqual([1, 2, 3, 4]);
});

const UNIT = `# /usr/lib/systemd/system/kubelet.service
[Unit]
Description=kubelet: The Kubernetes Node Agent
[Service]
ExecStart=/usr/bin/kubelet --old
ExecStartPre=/bin/mkdir --parents /var/lib/kubelet

# /usr/lib/systemd/system/kubelet.service.d/10-kubeadm.conf
[Service]
Environment="KUBELET_KUBECONFIG_ARGS=--kubeconfig=/a" KUBELET_CONFIG_ARGS=--config=/b
Environment="UNUSED=--unused"
EnvironmentFile=-/var/lib/kubelet/kubeadm-flags.env
ExecStart=
ExecStart=/usr/bin/kubelet $KUBELET_KUBECONFIG_ARGS \\
  \${KUBELET_CONFIG_ARGS} $KUBELET_KUBEADM_ARGS --c=d
`;

test("of a unit with drop-ins the last ExecStart counts, with the variables that it names", () => {
  expect(read(UNIT)).toEqual({
    args: ["--kubeconfig=/a", "--config=/b", "--c=d"],
    lines: [10, 10, 15],
    unset: ["KUBELET_KUBEADM_ARGS"],
  });
  const whole = read(`${UNIT}KUBELET_KUBEADM_ARGS="--e=f --g"\n`);
  expect(whole).toMatchObject({ args: ["--kubeconfig=/a", "--config=/b", "--e=f", "--g", "--c=d"], unset: [] });
  expect(whole.lines).toEqual([10, 10, 16, 16, 15]);
});
