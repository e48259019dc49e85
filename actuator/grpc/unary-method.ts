import { type MethodDefinition, status } from "@grpc/grpc-js";
import { err, map, type Result } from "../../api/model/result.ts";
import type { Refusal, UnaryHandler } from "./unary-server.ts";

/** A method over its messages; bytes that are none, and an answer that throws, end as grpc-js ends them. */
export const unaryMethod =
  <Q, A>(
    { requestDeserialize, responseSerialize }: MethodDefinition<Q, A>,
    answer: (request: Q) => Result<A, Refusal> | Promise<Result<A, Refusal>>,
  ): UnaryHandler =>
  async (message) => {
    let request: Q;
    try {
      request = requestDeserialize(message);
    } catch (error) {
      return err({ code: status.INTERNAL, message: `Error deserializing request: ${(error as Error).message}` });
    }
    try {
      return map(await answer(request), responseSerialize);
    } catch (error) {
      return err({ code: status.UNKNOWN, message: `Server method handler threw error ${(error as Error).message}` });
    }
  };
