// Shows the OpenAPI document that the page names, and follows the colours of the system.
"use strict";

const place = document.getElementById("reference");
const dark = window.matchMedia("(prefers-color-scheme: dark)");

function setColours() {
  document.documentElement.classList.toggle("dark-mode", dark.matches);
}

setColours();
dark.addEventListener("change", setColours);

// The page has a title, a main part and the choice of the document; Swagger UI would add its own.
function PlainPage(system) {
  const element = system.React.createElement;

  function PlainLayout({ getComponent, specSelectors }) {
    const Markdown = getComponent("Markdown", true);
    const AuthorizeBtn = getComponent("AuthorizeBtnContainer", true);
    const Operations = getComponent("operations", true);
    const Errors = getComponent("errors", true);
    if (specSelectors.loadingStatus() !== "success") {
      return element("p", { role: "status" }, "Loading ...");
    }
    return element(
      "div",
      { className: "swagger-ui" },
      element(Errors),
      element(Markdown, { source: specSelectors.info().get("description") }),
      specSelectors.securityDefinitions() ? element("div", { className: "auth-wrapper" }, element(AuthorizeBtn)) : null,
      element("h2", null, "Operations"),
      element(Operations)
    );
  }

  return {
    components: { PlainLayout },
    // A link inside a button cannot be reached with the keyboard.
    wrapComponents: { DeepLink: () => ({ text }) => element("span", null, text) },
  };
}

// The choices of Swagger UI have no names, and the keyboard cannot scroll its examples.
function completeParts() {
  for (const choice of place.querySelectorAll("select:not([aria-label])")) {
    choice.setAttribute("aria-label", choice.closest("[data-param-name]")?.dataset.paramName ?? "Choice");
  }
  for (const example of place.querySelectorAll("pre:not([tabindex])")) {
    example.setAttribute("tabindex", "0");
  }
}

new MutationObserver(completeParts).observe(place, { childList: true, subtree: true });

SwaggerUIBundle({
  domNode: place,
  url: place.dataset.document,
  plugins: [PlainPage],
  layout: "PlainLayout",
  deepLinking: true,
  docExpansion: "list",
  validatorUrl: null,
});
