/* Building elements. Text is always a text node, so that the text of episodes is never parsed as HTML. */
(function () {
  "use strict";
  const SVG = "http://www.w3.org/2000/svg";

  function set(node, name, value) {
    if (value === null || value === undefined || value === false) return;
    if (name === "class") node.setAttribute("class", value);
    else if (name === "text") node.textContent = value;
    else if (name === "dataset") Object.assign(node.dataset, value);
    else if (name === "style") for (const [key, item] of Object.entries(value)) node.style.setProperty(key, item);
    else if (name === "on") for (const [key, item] of Object.entries(value)) node.addEventListener(key, item);
    else if (value === true && name in node) node[name] = true;
    else node.setAttribute(name, value === true ? "" : String(value));
  }

  function append(node, children) {
    for (const child of children) {
      if (child === null || child === undefined || child === false) continue;
      if (Array.isArray(child)) append(node, child);
      else node.append(child instanceof Node ? child : String(child));
    }
  }

  function build(node, props, children) {
    for (const [name, value] of Object.entries(props || {})) set(node, name, value);
    append(node, children);
    return node;
  }

  Viewer.el = (tag, props, ...children) => build(document.createElement(tag), props, children);
  Viewer.svg = (tag, props, ...children) => build(document.createElementNS(SVG, tag), props, children);

  Viewer.fill = (node, ...children) => {
    node.replaceChildren();
    append(node, children);
    return node;
  };

  /* Numbers with at most `digits` decimals, without trailing zeros, and with a typographic minus sign. */
  Viewer.number = (value, digits = 2) => {
    if (value === null || value === undefined) return "–";
    if (!Number.isFinite(value)) return String(value);
    return String(Number(value.toFixed(digits))).replace("-", "−");
  };
  Viewer.signed = (value, digits = 2) => (value > 0 ? "+" : "") + Viewer.number(value, digits);
  Viewer.count = (value) => Number(value).toLocaleString("en-GB");
  Viewer.plural = (value, one, many) => `${Viewer.count(value)} ${value === 1 ? one : many || one + "s"}`;
  Viewer.chip = (text, tone, title) => Viewer.el("span", { class: `chip ${tone || ""}`, title }, text);

  Viewer.icon = (path, label) =>
    Viewer.svg(
      "svg",
      {
        class: "icon",
        viewBox: "0 0 16 16",
        "aria-hidden": label ? null : "true",
        role: label ? "img" : null,
        "aria-label": label,
      },
      Viewer.svg("path", { d: path }),
    );

  /* A placeholder for an empty page, with a hint on what to do. */
  Viewer.empty = (title, text, ...more) => {
    const { el } = Viewer;
    return el("div", { class: "empty" }, el("h2", {}, title), el("p", {}, text), more);
  };

  /* A table that scrolls sideways on its own; `label` describes it to screen readers. */
  Viewer.scroller = (label, heads, body) => {
    const { el } = Viewer;
    const row = heads.map((head) => el("th", { scope: "col" }, head));
    return el(
      "div",
      { class: "scroller", tabindex: "0", role: "region", "aria-label": label },
      el("table", {}, el("thead", {}, el("tr", {}, row)), body),
    );
  };

  /* True if a key press belongs to a control and not to the page. */
  Viewer.typing = (event) =>
    event.ctrlKey ||
    event.metaKey ||
    event.altKey ||
    event.target.matches("input, textarea, select, [contenteditable]");

  Viewer.calm = () => matchMedia("(prefers-reduced-motion: reduce)").matches;
})();
