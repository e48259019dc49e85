import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

export interface KeyPair {
  readonly key: string;
  readonly cert: string;
}
export interface Authority extends KeyPair {
  /** A certificate of this authority for a server at 127.0.0.1, or for a client of that name. */
  issue(name: string): KeyPair;
}

/** A certificate authority like that of a cluster, made with openssl. */
export function authority(name: string): Authority {
  const own = inFolder((folder) => {
    const ca = ["-addext", "basicConstraints=critical,CA:TRUE", "-addext", "keyUsage=critical,keyCertSign"];
    openssl(folder, ["req", "-x509", ...NEW_KEY, "-subj", `/CN=${name}`, "-out", "cert.pem", ...ca]);
    return read(folder);
  });
  const issue = (subject: string): KeyPair =>
    inFolder((folder) => {
      writeFileSync(join(folder, "ca.pem"), own.cert);
      writeFileSync(join(folder, "ca.key"), own.key);
      writeFileSync(join(folder, "names"), "subjectAltName=IP:127.0.0.1\n");
      openssl(folder, ["req", ...NEW_KEY, "-subj", `/CN=${subject}`, "-out", "request.pem"]);
      const signed = ["-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-days", "1", "-extfile", "names"];
      openssl(folder, ["x509", "-req", "-in", "request.pem", ...signed, "-out", "cert.pem"]);
      return read(folder);
    });
  return { ...own, issue };
}

/** A self-signed certificate with a key of this many bits, for a name that no server has. */
export const selfSigned = (bits: number): KeyPair =>
  inFolder((folder) => {
    const key = ["-nodes", "-newkey", `rsa:${bits}`, "-keyout", "key.pem"];
    openssl(folder, ["req", "-x509", ...key, "-days", "1", "-subj", "/CN=nobody.invalid", "-out", "cert.pem"]);
    return read(folder);
  });

const NEW_KEY = ["-nodes", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-keyout", "key.pem"];
const openssl = (cwd: string, args: readonly string[]): void => {
  execFileSync("openssl", args, { cwd, stdio: ["ignore", "ignore", "pipe"] });
};
const read = (folder: string): KeyPair => ({
  key: readFileSync(join(folder, "key.pem"), "utf8"),
  cert: readFileSync(join(folder, "cert.pem"), "utf8"),
});
function inFolder<T>(work: (folder: string) => T): T {
  const folder = mkdtempSync(join(tmpdir(), "nodewise-certificates-"));
  try {
    return work(folder);
  } finally {
    rmSync(folder, { recursive: true });
  }
}
