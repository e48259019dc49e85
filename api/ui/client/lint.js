// What the lint page gains with a script: what is too large is told before it is sent.
import { watchSizes } from "/assets/sizes.js";

watchSizes(document.getElementById("lint"));
