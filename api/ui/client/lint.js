// What the lint page gains with a script: a file or a text that is larger than a form may be is told beside its field, before
// it is sent.

const form = document.getElementById("lint");
const file = form.querySelector("input[type=file]");
const text = form.querySelector("textarea");
const LIMIT = Number(file.dataset.limit);
const MIB = 1024 ** 2;

/** Where a fault of a field is told, below it. */
function told(field) {
  const fault = document.createElement("div");
  fault.id = `${field.id}-large`;
  fault.className = "note bad small";
  fault.setAttribute("role", "alert");
  fault.hidden = true;
  (field.closest("label") ?? field).after(fault);
  return fault;
}
const FAULTS = [file, text].map((field) => ({ field, fault: told(field) }));

/** A character has one byte to three, so most texts need not be counted. */
function bytesOf(field) {
  if (field === file) return file.files[0]?.size ?? 0;
  const { length } = field.value;
  return length > LIMIT || length * 3 <= LIMIT ? length : new TextEncoder().encode(field.value).length;
}

function tell({ field, fault }) {
  const bytes = bytesOf(field);
  const isLarge = bytes > LIMIT;
  const name = field === file ? (file.files[0]?.name ?? "") : "the text";
  fault.textContent = isLarge
    ? `${name} has ${(bytes / MIB).toFixed(1)} MiB, and a form may have ${LIMIT / MIB}: give the KubeletConfiguration alone`
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

// not at "change", which a text has at the click on the button: what is told would move that away from under the pointer
for (const one of FAULTS) one.field.addEventListener("input", () => tell(one));
file.addEventListener("change", () => tell(FAULTS[0]));
form.addEventListener("submit", (event) => {
  const large = FAULTS.filter(tell);
  if (large.length === 0) return;
  event.preventDefault();
  large[0].field.focus();
});
