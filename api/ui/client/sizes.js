// A file or text that is too large for the form is reported beside its field at once, and is not sent.

const MIB = 1024 ** 2;

/** Watches the configuration field of a form. */
export function watchSizes(form) {
  const file = form.querySelector("input[type=file]");
  const text = form.querySelector("textarea");
  const limit = Number(file.dataset.limit);
  const faults = [file, text].map((field) => ({ field, fault: placeOf(field), limit }));
  // not at "change", which fires at the click on the button: the message would move the button away from under the pointer
  for (const one of faults) one.field.addEventListener("input", () => reportSize(one));
  file.addEventListener("change", () => reportSize(faults[0]));
  form.addEventListener("submit", (event) => {
    const large = faults.filter(reportSize);
    if (large.length === 0) return;
    event.preventDefault();
    large[0].field.focus();
  });
}

/** The place of a field's fault, below the field. */
function placeOf(field) {
  const fault = document.createElement("div");
  fault.id = `${field.id}-large`;
  fault.className = "note bad small";
  fault.setAttribute("role", "alert");
  fault.hidden = true;
  (field.closest("label") ?? field).after(fault);
  return fault;
}

/** A UTF-16 unit has one to three bytes, so most texts need not be counted. */
function bytesOf(field, limit) {
  if (field.type === "file") return field.files[0]?.size ?? 0;
  const { length } = field.value;
  return length > limit || length * 3 <= limit ? length : new TextEncoder().encode(field.value).length;
}

/** Reports whether the field is too large. */
function reportSize({ field, fault, limit }) {
  const bytes = bytesOf(field, limit);
  const isLarge = bytes > limit;
  const name = field.type === "file" ? (field.files[0]?.name ?? "") : "the text";
  fault.textContent = isLarge
    ? `${name} has ${(bytes / MIB).toFixed(1)} MiB, and a form may have ${limit / MIB}: give the KubeletConfiguration alone`
    : "";
  fault.hidden = !isLarge;
  if (isLarge) {
    field.setAttribute("aria-invalid", "true");
    field.setAttribute("aria-describedby", fault.id);
  } else if (field.getAttribute("aria-describedby") === fault.id) {
    field.removeAttribute("aria-invalid");
    field.removeAttribute("aria-describedby");
  }
  return isLarge;
}
