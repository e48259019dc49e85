/**
 * A system error as Go prints it: `mkdir /x: file exists`. libuv words some of the kernel's errors differently. An error that
 * is not the system's is rethrown: it is a mistake in the code.
 */
export function goErrorText(error: unknown): string {
  const { code, syscall, path, message } = error as NodeJS.ErrnoException;
  if (code === undefined || syscall === undefined) throw error;
  const words = GO_WORDS[code] ?? /^\w+: (.*?), /.exec(message)?.[1] ?? code;
  return path === undefined ? `${syscall}: ${words}` : `${syscall} ${path}: ${words}`;
}

const GO_WORDS: Readonly<Record<string, string>> = {
  EEXIST: "file exists",
  EISDIR: "is a directory",
  ELOOP: "too many levels of symbolic links",
  EBUSY: "device or resource busy",
  EROFS: "read-only file system",
  ENAMETOOLONG: "file name too long",
  EDQUOT: "disk quota exceeded",
};

/** The system's code of an error, `ENOENT`; what is none of the system's is thrown on. */
export function codeOf(error: unknown): string {
  const { code } = error as NodeJS.ErrnoException;
  if (code === undefined) throw error;
  return code;
}
