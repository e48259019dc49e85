// The script of the what-if page: the files that were chosen are named, too large ones before they are sent.

const files = document.getElementById("files");
const chosen = document.getElementById("chosen");
const form = document.querySelector("form.what-if");
const result = document.getElementById("result");
const LIMIT = Number(form.dataset.limit);

const sizeText = (bytes) =>
  bytes < 1024 ** 2 ? `${Math.ceil(bytes / 1024)} KiB` : `${(bytes / 1024 ** 2).toFixed(1)} MiB`;

function showChosen() {
  const list = [...files.files];
  const total = list.reduce((sum, { size }) => sum + size, 0);
  const names = list.map(({ name, size }) => `${name} (${sizeText(size)})`).join(", ");
  const isTooLarge = total > LIMIT;
  const largest = list.reduce((a, b) => (a === undefined || b.size > a.size ? b : a), undefined);
  chosen.textContent = isTooLarge
    ? `${largest.name}: ${sizeText(total)} together is more than ${sizeText(LIMIT)}, which is all that is read: leave some out`
    : names;
  chosen.classList.toggle("bad-text", isTooLarge);
  files.setCustomValidity(isTooLarge ? chosen.textContent : "");
}

files.addEventListener("change", showChosen);
showChosen();

form.addEventListener("submit", () => {
  result.setAttribute("aria-busy", "true");
});
// back from the answer: no request is running
addEventListener("pageshow", () => result.removeAttribute("aria-busy"));
