// What the keyboard and the clipboard add to the console. Every page works without it.
"use strict";

document.addEventListener("keydown", (event) => {
  const box = document.getElementById("find");
  if (!box || event.ctrlKey || event.metaKey || event.altKey) return;
  const isTyping = event.target.closest("input, textarea, select, [contenteditable]") !== null;
  if (event.key === "/" && !isTyping) {
    event.preventDefault();
    box.focus();
    box.select();
  }
  const found = [...document.querySelectorAll("#results a.found")];
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  const at = found.indexOf(document.activeElement);
  if (step === undefined || !found.length || (at < 0 && event.target !== box)) return;
  event.preventDefault();
  const next = at + step;
  if (next < 0) box.focus();
  else if (next < found.length) found[next].focus();
});

document.addEventListener("click", async (event) => {
  const button = event.target.closest("[data-copy]");
  if (!button) return;
  await navigator.clipboard.writeText(button.dataset.copy);
  button.textContent = "copied";
});

const showCopyButtons = () => document.querySelectorAll("[data-copy][hidden]").forEach((one) => (one.hidden = false));
document.addEventListener("htmx:afterSwap", showCopyButtons);
showCopyButtons();
