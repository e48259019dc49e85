/** Keys of advisory locks, which are local to the database: nothing else uses them there. Each is released at the end of its transaction. */
export const MIGRATING = 7_031_001;
/** A lock that all writes share; a process that holds it exclusively is the only writer. */
export const WRITING = 7_031_002;
/** The first half of the key of a name, such as a node's. */
export const NAME = 7_031_003;
