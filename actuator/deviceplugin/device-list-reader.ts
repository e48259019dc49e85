import { LIMITS } from "../../api/model/limits.ts";
import { err, ok, type Result } from "../../api/model/result.ts";
import { type DeviceEntry, type DeviceList, entryOf, listOf } from "./device-list.ts";
import { type DevicePlace, devicePlaces, readDevice } from "./device-message.ts";

/** Of a list that is refused: how many it holds is counted for those who are to mend it. */
function tooManyText(bytes: Buffer, most: number): string {
  const count = devicePlaces(bytes, LIMITS.devices)?.length;
  if (count === undefined) return NO_LIST;
  if (count > LIMITS.devices)
    return `the list holds more than ${LIMITS.devices} devices, the most that a node may have`;
  return `the list holds ${count} devices, and no other plugin lists more: all plugins together may list ${LIMITS.devices}, and there is room for ${most} of this one`;
}

interface ReadList {
  readonly bytes: Buffer;
  readonly places: readonly DevicePlace[];
  readonly entries: readonly DeviceEntry[];
  readonly list: DeviceList;
}
const NONE: ReadList = { bytes: Buffer.alloc(0), places: [], entries: [], list: { devices: [], remarks: [] } };
/** So few are decoded rather than looked for among those of the last list. */
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
   * Error: why the list is refused whole; that of another plugin is not touched by it.
   */
  read(bytes: Buffer, most: number = LIMITS.devices): Result<DeviceList, string> {
    const places = devicePlaces(bytes, most);
    if (places === undefined) return err(NO_LIST);
    if (places.length > most) return err(tooManyText(bytes, most));
    const changed = places.flatMap((place, i) => (this.#isAsItWas(bytes, place, i) ? [] : [i]));
    const known = changed.length > FEW ? this.#byText() : undefined;
    const entries = [...this.#last.entries.slice(0, places.length)];
    for (const i of changed) {
      const { begin, end } = places[i] as DevicePlace;
      const entry = known?.get(bytes.toString("latin1", begin, end)) ?? this.#entryAt(bytes, places[i] as DevicePlace);
      if (entry === undefined) return err(NO_LIST);
      entries[i] = entry;
    }
    const list = this.#changedIn(entries, changed) ?? listOf(entries);
    this.#last = { bytes, places, entries, list };
    return ok(list);
  }

  #isAsItWas(bytes: Buffer, { begin, end }: DevicePlace, i: number): boolean {
    const { bytes: last, places } = this.#last;
    const before = places[i];
    return (
      before !== undefined &&
      before.end - before.begin === end - begin &&
      bytes.compare(last, before.begin, before.end, begin, end) === 0
    );
  }
  #byText(): ReadonlyMap<string, DeviceEntry> {
    const { bytes, places, entries } = this.#last;
    return new Map(
      places.map(({ begin, end }, i) => [bytes.toString("latin1", begin, end), entries[i] as DeviceEntry]),
    );
  }
  #entryAt(bytes: Buffer, place: DevicePlace): DeviceEntry | undefined {
    const device = readDevice(bytes, place);
    return device && entryOf(this.#resource, device);
  }

  /** The last list with those that changed in their places; undefined: it is to be put together anew. */
  #changedIn(entries: readonly DeviceEntry[], changed: readonly number[]): DeviceList | undefined {
    const { devices: last, remarks } = this.#last.list;
    const isPlain = (i: number): boolean => {
      const { device, fault, isMended } = entries[i] as DeviceEntry;
      return fault === undefined && !isMended && device.id === last[i]?.id;
    };
    // without a remark each entry is a device of its own
    if (remarks.length > 0 || last.length !== entries.length || !changed.every(isPlain)) return undefined;
    const devices = [...last];
    for (const i of changed) devices[i] = (entries[i] as DeviceEntry).device;
    return { devices, remarks };
  }
}
