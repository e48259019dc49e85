// The script of the upgrade page: a file that is too large is refused before it is sent.
import { watchSizes } from "/assets/sizes.js";

watchSizes(document.getElementById("upgrade"));
