import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

export interface Certificate {
  readonly key: Buffer;
  readonly cert: Buffer;
}
/** Signed by itself, of a name that nobody has; made by openssl. */
export function selfSigned(bits: number): Certificate {
  const directory = mkdtempSync(join(tmpdir(), "nodewise-cert-"));
  const [key, cert] = [join(directory, "key.pem"), join(directory, "cert.pem")];
  try {
    const args = ["req", "-x509", "-nodes", "-newkey", `rsa:${bits}`, "-days", "1", "-subj", "/CN=nobody.invalid"];
    execFileSync("openssl", [...args, "-keyout", key, "-out", cert], { stdio: ["ignore", "ignore", "pipe"] });
    return { key: readFileSync(key), cert: readFileSync(cert) };
  } finally {
    rmSync(directory, { recursive: true });
  }
}

/** Why programs that a test needs are not there, said once; undefined: they are. They must be where CI runs it. */
export function noPrograms(what: string, ...programs: readonly string[]): string | undefined {
  const missing = programs.filter((program) => !hasProgram(program));
  if (missing.length === 0) return undefined;
  const why = `${missing.join(" and ")} not found`;
  if (process.env["CI"] === "true") throw new Error(`CI must run ${what}: ${why}`);
  console.warn(`skipped ${what}: ${why}`);
  return why;
}
function hasProgram(program: string): boolean {
  try {
    execFileSync("which", [program], { stdio: "ignore", env: { PATH: `${process.env["PATH"]}:/usr/sbin` } });
    return true;
  } catch {
    return false;
  }
}
