/** The most that an answer may have: the largest of a node is a few MB. */
export const MOST_ANSWER_BYTES = 64 * 1024 * 1024;

/** The whole text of an answer; null: it is longer than any. Throws where it does not come to its end. */
export async function answerText(response: Response): Promise<string | null> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of response.body ?? []) {
    bytes += chunk.length;
    if (bytes > MOST_ANSWER_BYTES) return null;
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString("utf8");
}
