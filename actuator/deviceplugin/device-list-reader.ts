import { LIMITS } from "../../api/model/limits.ts";
import { err, ok, type Result } from "../../api/model/result.ts";
import { DEVICE_BYTES, type DeviceEntry, type DeviceList, entryOf, listOf } from "./device-list.ts";
import { devicePlaces, readDevice } from "./device-message.ts";
import { changesSince, type ListBytes } from "./list-changes.ts";

/** Of a list that is refused: how many it holds is counted for those who are to mend it. */
function tooManyText(bytes: Buffer, most: number): string {
  const places = devicePlaces(bytes, LIMITS.devices);
  if (places === undefined) return NO_LIST;
  const count = places.length / 2;
  if (count > LIMITS.devices)
    return `the list holds more than ${LIMITS.devices} devices, the most that a node may have`;
  return `the list holds ${count} devices, and there is room for ${most} of this one: all plugins together may list ${LIMITS.devices}, and those that are in use or came first keep theirs`;
}

/** Of a list whose devices take more than their share of bytes. */
const tooLargeText = ({ devices, size }: DeviceList, most: number): string =>
  `the list holds ${devices.length} devices whose ids (and NUMA nodes) take more than ${DEVICE_BYTES} bytes each, so that they count as ${size}, and there is room for ${most} of this one: all plugins together may list ${LIMITS.devices}, and those that are in use or came first keep theirs`;

interface ReadList extends ListBytes {
  readonly entries: readonly DeviceEntry[];
  readonly list: DeviceList;
}
const NONE: ReadList = { bytes: Buffer.alloc(0), places: [], entries: [], list: { devices: [], remarks: [], size: 0 } };
/** So few that have changed in their places are decoded rather than looked for among those of the last list. */
const FEW = 16;
const NO_LIST = "the list is no ListAndWatchResponse";

/**
 * Reads the lists of one plugin, one after the other. A device whose bytes are as they were is the same object as before:
 * of thousands few change, and plugins that flip without end are to cost little.
 */
export class DeviceListReader {
  readonly #resource: string;
  #last = NONE;

  constructor(resource: string) {
    this.#resource = resource;
  }

  /**
   * A ListAndWatchResponse, whose bytes stay as they are. Counts before it decodes, so that a million devices cost a scan.
   * `most`: asked where another number of devices may be listed than before. Error: why the list is refused whole; that of
   * another plugin is not touched by it.
   */
  read(bytes: Buffer, most: () => number = () => LIMITS.devices): Result<DeviceList, string> {
    const changes = changesSince(this.#last, bytes);
    if (changes === undefined) return this.#anew(bytes, most());
    const { places, changed } = changes;
    const entries = this.#withThese(bytes, places, changed, [...this.#last.entries]);
    if (entries === undefined) return err(NO_LIST);
    const list = this.#changedIn(entries, changed) ?? listOf(entries);
    if (list.size > this.#last.list.size && list.size > most()) return err(tooLargeText(list, most()));
    this.#last = { bytes, places, entries, list };
    return ok(list);
  }

  #anew(bytes: Buffer, most: number): Result<DeviceList, string> {
    const places = devicePlaces(bytes, most);
    if (places === undefined) return err(NO_LIST);
    if (places.length > 2 * most) return err(tooManyText(bytes, most));
    const all = Array.from({ length: places.length / 2 }, (_, i) => i);
    const entries = this.#withThese(bytes, places, all, []);
    if (entries === undefined) return err(NO_LIST);
    const list = listOf(entries);
    if (list.size > most) return err(tooLargeText(list, most));
    this.#last = { bytes, places, entries, list };
    return ok(list);
  }

  /** Those that changed in their places; undefined: one cannot be read. */
  #withThese(
    bytes: Buffer,
    places: readonly number[],
    changed: readonly number[],
    entries: DeviceEntry[],
  ): DeviceEntry[] | undefined {
    const isMoved = entries.length === 0 && this.#last.entries.length > 0;
    const known = isMoved || changed.length > FEW ? this.#byText() : undefined;
    for (const i of changed) {
      const begin = places[2 * i] as number;
      const end = places[2 * i + 1] as number;
      const entry = known?.get(bytes.toString("latin1", begin, end)) ?? this.#entryAt(bytes, begin, end);
      if (entry === undefined) return undefined;
      entries[i] = entry;
    }
    return entries;
  }
  #byText(): ReadonlyMap<string, DeviceEntry> {
    const { bytes, places, entries } = this.#last;
    return new Map(entries.map((entry, i) => [bytes.toString("latin1", places[2 * i], places[2 * i + 1]), entry]));
  }
  #entryAt(bytes: Buffer, begin: number, end: number): DeviceEntry | undefined {
    const device = readDevice(bytes, begin, end);
    return device && entryOf(this.#resource, device);
  }

  /** The last list with those that changed in their places; undefined: it is to be put together anew. */
  #changedIn(entries: readonly DeviceEntry[], changed: readonly number[]): DeviceList | undefined {
    const { devices: last, remarks, size } = this.#last.list;
    // without a remark each entry is a device of its own
    if (remarks.length > 0) return undefined;
    const devices = [...last];
    for (const i of changed) {
      const { device, fault, isMended } = entries[i] as DeviceEntry;
      if (fault !== undefined || isMended || device.id !== last[i]?.id) return undefined;
      // on more nodes than before, it may take more
      if (device.numaNodes?.length !== last[i]?.numaNodes?.length) return undefined;
      devices[i] = device;
    }
    return { devices, remarks, size };
  }
}
