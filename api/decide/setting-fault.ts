/** A setting that a kubelet would not start with: where, and its own words. */
export interface SettingFault {
  /** `evictionHard["memory.available"]`, below kubeletConfiguration. */
  readonly field: string;
  readonly message: string;
}
export const settingFault = (field: string, message: string): SettingFault => ({ field, message });
