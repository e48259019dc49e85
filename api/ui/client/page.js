// The script of every page: ages that are updated, buttons that copy, drop targets for files.

const STEPS = [
  [86_400, "d"],
  [3_600, "h"],
  [60, "min"],
  [1, "s"],
];

/** `3 min ago`, `in 2 h`. */
function ageText(seconds) {
  const [size, unit] = STEPS.find(([step]) => Math.abs(seconds) >= step) ?? STEPS.at(-1);
  const count = Math.floor(Math.abs(seconds) / size);
  return seconds < 0 ? `in ${count} ${unit}` : `${count} ${unit} ago`;
}

function updateAges() {
  for (const time of document.querySelectorAll("time[data-age]")) {
    const text = ageText((Date.now() - Date.parse(time.dateTime)) / 1000);
    if (time.textContent !== text) time.textContent = text;
  }
}

/** Adds a button that copies the text of an element with `data-copy`. */
function offerCopies() {
  for (const source of document.querySelectorAll("[data-copy]:not([data-offered])")) {
    source.dataset.offered = "";
    const button = document.createElement("button");
    button.type = "button";
    button.className = "copy";
    button.textContent = "Copy";
    button.setAttribute("aria-label", `Copy ${source.dataset.copy}`);
    button.addEventListener("click", async () => {
      try {
        await navigator.clipboard.writeText(source.textContent.trim());
        button.textContent = "Copied";
      } catch {
        getSelection().selectAllChildren(source);
        button.textContent = "Selected";
      }
      setTimeout(() => {
        button.textContent = "Copy";
      }, 2000);
    });
    source.after(button);
  }
}

/** A file dropped on `data-drop="ID"` goes into the file input of that id. */
function takeDrops() {
  for (const zone of document.querySelectorAll("[data-drop]")) {
    const input = document.getElementById(zone.dataset.drop);
    zone.addEventListener("dragover", (event) => {
      event.preventDefault();
      zone.classList.add("over");
    });
    zone.addEventListener("dragleave", () => zone.classList.remove("over"));
    zone.addEventListener("drop", (event) => {
      event.preventDefault();
      zone.classList.remove("over");
      if (event.dataTransfer.files.length > 0) input.files = event.dataTransfer.files;
      input.dispatchEvent(new Event("change", { bubbles: true }));
    });
  }
}

/** Opens the sign-in page, which leads back to this page. */
export function signInLink() {
  const link = document.createElement("a");
  link.href = `/sign-in?${new URLSearchParams({ to: location.pathname + location.search + location.hash })}`;
  link.textContent = "Sign in";
  return link;
}

/** Must be called after parts of the page were replaced. */
export function furnish() {
  updateAges();
  offerCopies();
}

/** Opens the folded part to which a link leads. */
function openTarget() {
  const part = location.hash === "" ? null : document.getElementById(location.hash.slice(1));
  // the part itself and the parts around it: parts folded inside it stay folded
  document.getElementById(`${part?.id}-part`)?.setAttribute("open", "");
  for (let at = part?.closest("details"); at; at = at.parentElement.closest("details")) at.open = true;
}
addEventListener("hashchange", openTarget);

furnish();
openTarget();
takeDrops();
setInterval(updateAges, 1000);
