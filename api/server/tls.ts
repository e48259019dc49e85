import { X509Certificate } from "node:crypto";
import { readFileSync, statSync } from "node:fs";
import type { Server } from "node:https";
import { createSecureContext } from "node:tls";
import { err, ok, type Result } from "../base/result.ts";
import type { Log } from "../observe/log.ts";

/** The server's certificate (followed by the chain that clients need) and its private key, PEM files. */
export interface TlsFiles {
  readonly certFile: string;
  readonly keyFile: string;
}
export interface KeyPair {
  readonly cert: Buffer;
  readonly key: Buffer;
  /** When the certificate expires, Unix time in ms. */
  readonly validToMs: number;
}

const RENEWAL_MS = 60_000;
/** A certificate that expires sooner causes a warning: cert-manager and ACME clients renew at a third of 90 days. */
const SOON_MS = 7 * 24 * 3600 * 1000;

/**
 * Reads both files. Errors, in one line: a file that cannot be read or is no PEM, a key that does not match the certificate, an
 * expired certificate.
 */
export function readKeyPair({ certFile, keyFile }: TlsFiles, nowMs: number): Result<KeyPair, string> {
  const cert = read(certFile);
  if (!cert.ok) return cert;
  const key = read(keyFile);
  if (!key.ok) return key;
  let certificate: X509Certificate;
  try {
    certificate = new X509Certificate(cert.value);
  } catch {
    return err(`${certFile}: is no certificate in PEM form (-----BEGIN CERTIFICATE-----)`);
  }
  try {
    createSecureContext({ cert: cert.value, key: key.value });
  } catch (error) {
    const { code = "", message } = error as NodeJS.ErrnoException;
    return err(
      code === "ERR_OSSL_X509_KEY_VALUES_MISMATCH"
        ? `${keyFile}: is not the private key of the certificate in ${certFile}`
        : `${keyFile}: is no private key in PEM form without a passphrase (${code || message})`,
    );
  }
  const validToMs = certificate.validToDate.getTime();
  if (validToMs <= nowMs)
    return err(`${certFile}: the certificate expired at ${certificate.validToDate.toISOString()}`);
  return ok({ cert: cert.value, key: key.value, validToMs });
}

function read(file: string): Result<Buffer, string> {
  try {
    return ok(readFileSync(file));
  } catch (error) {
    return err(`${file}: cannot be read: ${(error as NodeJS.ErrnoException).code}`);
  }
}

/**
 * Uses a renewed certificate for new connections within a minute after its files changed; an invalid pair is logged, and the old
 * one stays. Returns a function that stops this.
 */
export function reloadRenewed(server: Server, files: TlsFiles, log: Log, everyMs: number = RENEWAL_MS): () => void {
  const stamp = (): string => [files.certFile, files.keyFile].map(changedAt).join(" ");
  let last = stamp();
  let lastWarnedMs = 0;
  const check = (): void => {
    const now = Date.now();
    const next = stamp();
    const pair = readKeyPair(files, now);
    if (pair.ok && next !== last) {
      server.setSecureContext({ cert: pair.value.cert, key: pair.value.key });
      log.info({ file: files.certFile, until: new Date(pair.value.validToMs).toISOString() }, "certificate renewed");
    }
    if (next === last && now - lastWarnedMs < SOON_MS / 7) return;
    last = next;
    if (!pair.ok) log.error({ fault: pair.error }, "certificate not usable");
    else if (pair.value.validToMs - now < SOON_MS)
      log.warn(
        { file: files.certFile, until: new Date(pair.value.validToMs).toISOString() },
        "certificate expires soon",
      );
    else return;
    lastWarnedMs = now;
  };
  const timer = setInterval(check, everyMs);
  timer.unref();
  return () => clearInterval(timer);
}

function changedAt(file: string): string {
  try {
    const { mtimeMs, ino } = statSync(file);
    return `${ino}:${mtimeMs}`;
  } catch {
    return "gone";
  }
}
