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

// A form whose button would change nothing yet waits for a change; without a script, it can be sent.
for (const form of document.querySelectorAll("form[data-needs-change]")) {
  const save = form.querySelector("button.primary");
  if (!save) continue;
  save.disabled = true;
  form.addEventListener("input", () => (save.disabled = false), { once: true });
}

// The form of a session that had ended, as its page has it: with its labels, and what was typed and checked.
const showKeptForm = async (plain) => {
  const answer = await fetch(plain.dataset.screen);
  if (!answer.ok) return;
  const page = new DOMParser().parseFromString(await answer.text(), "text/html");
  const path = plain.getAttribute("action");
  const given = new FormData(plain);
  const isRenewed = (name) => ["csrf", "once", "version", "shown"].includes(name);
  const isSame = (one) => isRenewed(one.name) || given.getAll(one.name).includes(one.value);
  const own = [...page.querySelectorAll("main form[method=post]")].find((form) => {
    const places = [form.getAttribute("action"), ...[...form.querySelectorAll("[formaction]")].map((one) => one.getAttribute("formaction"))];
    return places.some((place) => place.split("?")[0] === path) && [...form.querySelectorAll("input[type=hidden]")].every(isSame);
  });
  // What has no place there would be lost.
  if (!own || [...given.keys()].some((name) => !isRenewed(name) && !own.elements.namedItem(name))) return;
  for (const one of own.querySelectorAll("input:not([type=hidden], [type=file]), select, textarea")) {
    const values = given.getAll(one.name);
    if (one.type === "checkbox" || one.type === "radio") one.checked = values.includes(one.value);
    else if (values.length) one.value = values[0];
  }
  // A form that was sent before counts once; and what is said of the present state is not of this form.
  // And what it was filled in beside is what it had shown.
  for (const name of ["once", "version"]) if (given.has(name)) own.querySelectorAll(`[name=${name}]`).forEach((one) => (one.value = given.get(name)));
  own.querySelectorAll("[aria-live]").forEach((one) => one.remove());
  own.querySelectorAll("details").forEach((one) => (one.open = true));
  const title = own.closest("details")?.querySelector("summary").textContent;
  if (title) document.querySelector("h1").textContent = title;
  plain.replaceWith(own);
};
const kept = document.getElementById("kept");
if (kept) showKeptForm(kept);
