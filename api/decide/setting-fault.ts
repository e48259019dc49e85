/** A setting with which a kubelet does not start: the field and the kubelet's message. */
export interface SettingFault {
  /** `evictionHard["memory.available"]`, below kubeletConfiguration. */
  readonly field: string;
  readonly message: string;
}
export const settingFault = (field: string, message: string): SettingFault => ({ field, message });
