// A button that copies, beside each text of the class `secret`. Without script, people select the text.
document.querySelectorAll(".secret").forEach((text) => {
  const button = document.createElement("button");
  button.type = "button";
  button.className = "plain copy";
  button.textContent = "Copy";
  button.addEventListener("click", () => {
    navigator.clipboard.writeText(text.textContent).then(() => {
      button.textContent = "Copied";
    });
  });
  text.after(" ", button);
});
