/* TextCraft: the inventory, and the tree of items that the goal is made of. */
(function () {
  "use strict";
  const { el, svg } = Viewer;
  const SIGNS = {
    have: ["M3.5 8.5l3 3 6-7", "carried"],
    ready: ["M8 2l6 6-6 6-6-6z", "can be crafted now"],
    missing: ["M8 3a5 5 0 1 0 .01 0z", "missing"],
    done: ["M4 8h8", "no longer needed"],
  };

  const sign = (status) =>
    svg("svg", { class: "tc-sign", viewBox: "0 0 16 16", "aria-hidden": "true" }, svg("path", { d: SIGNS[status][0] }));

  /* The items of two inventories with the change of their amounts. */
  function changes(carried, carriedBefore) {
    const now = new Map(carried);
    const before = new Map(carriedBefore);
    const rows = [...now].map(([name, amount]) => ({ name, amount, change: amount - (before.get(name) || 0) }));
    const gone = [...before]
      .filter(([name]) => !now.has(name))
      .map(([name, amount]) => ({ name, amount: 0, change: -amount }));
    return [...rows, ...gone];
  }

  function item({ name, amount, change }) {
    const mark = change
      ? el("span", { class: `tc-change ${change > 0 ? "up" : "down"}` }, Viewer.signed(change, 0))
      : null;
    return el(
      "li",
      { class: `tc-item ${amount ? "" : "gone"}` },
      el("b", {}, Viewer.count(amount)),
      Viewer.line(name, 80),
      mark,
    );
  }

  /* Draws an inventory (pairs of a name and an amount) with the changes since the turn before. */
  function carried(now, before) {
    const rows = changes(now, before);
    if (!rows.length) return el("p", { class: "p-empty" }, "Nothing is carried.");
    return el("ul", { class: "tc-items" }, rows.map(item));
  }

  function counts(node) {
    if (node.status === "done") return "no longer needed";
    return `${Viewer.count(node.have)} of ${Viewer.count(node.need)}`;
  }

  function advice(node) {
    if (node.status === "ready") return Viewer.chip("craft now", "good");
    if (node.status !== "missing") return null;
    if (!node.makes) return Viewer.chip(`take ${Viewer.count(node.missing)}`, "warn");
    const times = Math.ceil(node.missing / node.makes);
    return el("span", { class: "tc-hint" }, times > 1 ? `craft ${Viewer.count(times)} times` : "to be crafted");
  }

  function grow(node, more) {
    const row = el(
      "div",
      { class: `tc-node ${node.status}`, title: SIGNS[node.status][1] },
      sign(node.status),
      el("span", { class: "tc-name" }, Viewer.line(node.name, 80)),
      node.kind ? el("span", { class: "tc-hint" }, "as ", Viewer.line(node.kind, 60)) : null,
      el("span", { class: "tc-count" }, counts(node)),
      advice(node),
      more(node),
    );
    const parts = node.parts.map((part) => grow(part, more));
    return el("li", {}, row, parts.length ? el("ul", {}, parts) : null);
  }

  /* `more` returns additional elements for a node. */
  function tree(root, more = () => null) {
    if (!root) return null;
    return [el("h3", {}, "What it is made of"), el("ul", { class: "tc-tree" }, grow(root, more))];
  }

  Viewer.textcraft = { carried, tree };

  Viewer.panels.textcraft = {
    title: "Inventory and recipes",
    draw(states, index) {
      const { trees } = states[0].shared;
      const before = index > 0 ? states[index - 1].inventory : [];
      return el(
        "div",
        { class: "p-box p-textcraft" },
        el("h3", {}, "Carried"),
        carried(states[index].inventory, before),
        tree(trees[states[index].tree]),
      );
    },
  };
})();
