/** pgpass 1.0 brings no types. */
declare module "pgpass" {
  export interface Connection {
    readonly host: string;
    readonly port: number;
    readonly database?: string;
    readonly user?: string;
  }
  /** `done` gets undefined if the file has no line for the connection, or others may read it. */
  export default function pgpass(connection: Connection, done: (password: string | undefined) => void): void;
}
