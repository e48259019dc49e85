import { execFileSync } from "node:child_process";
import { generateKeyPairSync } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

export interface CertificateSpec {
  /** The subject in openssl's notation: `/O=system:masters/CN=admin`. */
  readonly subject: string;
  /** Subject alternative names of a server: `IP:198.18.0.1`, `DNS:worker-1`. */
  readonly names?: readonly string[];
}
/** The files of a certificate and its key. */
export interface CertificateFiles {
  readonly cert: string;
  readonly key: string;
}

/** A certificate authority in a directory, made with openssl; its certificates are valid for servers and clients. */
export class CertificateAuthority {
  readonly #dir: string;
  readonly files: CertificateFiles;

  constructor(dir: string) {
    this.#dir = dir;
    writeFileSync(join(dir, "openssl.cnf"), "[req]\ndistinguished_name = dn\n[dn]\n");
    this.files = this.#make("ca", "/CN=nodewise-test", ["basicConstraints=critical,CA:TRUE"], []);
  }
  get pem(): Buffer {
    return readFileSync(this.files.cert);
  }

  sign(name: string, { subject, names = [] }: CertificateSpec): CertificateFiles {
    const alternatives = names.length > 0 ? [`subjectAltName=${names.join(",")}`] : [];
    const extensions = [
      "basicConstraints=critical,CA:FALSE",
      "extendedKeyUsage=serverAuth,clientAuth",
      ...alternatives,
    ];
    return this.#make(name, subject, extensions, ["-CA", this.files.cert, "-CAkey", this.files.key]);
  }

  #make(name: string, subject: string, extensions: readonly string[], signer: readonly string[]): CertificateFiles {
    const [cert, key] = [join(this.#dir, `${name}.crt`), join(this.#dir, `${name}.key`)];
    const fresh = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "1"];
    const args = ["req", "-x509", "-config", join(this.#dir, "openssl.cnf"), ...fresh, "-subj", subject, ...signer];
    const extended = extensions.flatMap((extension) => ["-addext", extension]);
    execFileSync("openssl", [...args, ...extended, "-keyout", key, "-out", cert], {
      stdio: ["ignore", "ignore", "pipe"],
    });
    return { cert, key };
  }
}

/** Creates the key with which an API server signs service account tokens. */
export function serviceAccountKey(file: string): string {
  const { privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  writeFileSync(file, privateKey.export({ type: "sec1", format: "pem" }), { mode: 0o600 });
  return file;
}
