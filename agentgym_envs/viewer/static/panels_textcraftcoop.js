/* Cooperative TextCraft: the inventory and card of each agent, and the tree of items that the goal is made of. */
(function () {
  "use strict";
  const { el } = Viewer;

  /* A heading and a list of lines, or a text for an empty list. */
  function listed(title, lines, none) {
    const rows = lines.map((line) => el("li", {}, Viewer.line(line, 200)));
    return [el("h4", { class: "label" }, title), rows.length ? el("ul", {}, rows) : el("p", { class: "dim" }, none)];
  }

  function card({ recipes, takes }) {
    const known = Viewer.plural(recipes.length, "recipe");
    const own = takes === null ? "any item" : Viewer.plural(takes.length, "item");
    return el(
      "details",
      { class: "tc-card" },
      el("summary", {}, `Knows ${known}, takes ${own}`),
      listed("Recipes", recipes, "None."),
      takes === null ? null : listed("Can take", takes, "Nothing."),
    );
  }

  function inventory(states, index, agentIndex) {
    const { agents, cards, crafter } = states[0].shared;
    const before = index > 0 ? states[index - 1].inventories[agentIndex] : [];
    return [
      el(
        "header",
        {},
        Viewer.team.who({ agents }, agentIndex),
        crafter === agentIndex ? Viewer.chip("crafts the goal", "accent") : null,
      ),
      Viewer.textcraft.carried(states[index].inventories[agentIndex], before),
      card(cards[agentIndex]),
    ];
  }

  /* The agents that carry the item of a node. */
  function holders({ agents }, inventories) {
    return (node) => {
      if (!node.have) return null;
      const held = inventories.map((pairs) => new Map(pairs).get(node.name));
      return agents.map((agent, agentIndex) =>
        held[agentIndex] ? el("span", { class: "tc-hint" }, Viewer.team.who({ agents }, agentIndex)) : null,
      );
    };
  }

  Viewer.panels.textcraftcoop = {
    title: "Inventories and recipes",
    draw(states, index) {
      const { shared } = states[0];
      const { inventories, tree } = states[index];
      return el(
        "div",
        { class: "p-box p-textcraft" },
        el("h3", {}, "Carried"),
        el(
          "div",
          { class: "tc-inventories" },
          Viewer.team.members(shared, "", (agentIndex) => inventory(states, index, agentIndex)),
        ),
        Viewer.textcraft.tree(shared.trees[tree], holders(shared, inventories)),
      );
    },
  };
})();
