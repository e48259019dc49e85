/** pgpass 1.0 brings no types. */
declare module "pgpass" {
  export interface Connection {
    readonly host: string;
    readonly port: number;
    readonly database?: string;
    readonly user?: string;
  }
  /** `done` gets undefined where the file has no line for the connection, or may be read by others. */
  export default function pgpass(connection: Connection, done: (password: string | undefined) => void): void;
}
