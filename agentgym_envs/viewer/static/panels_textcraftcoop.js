/* Cooperative TextCraft: what each agent carries, knows and can take, and the tree of what the goal is made of. */
(function () {
  "use strict";
  const { el } = Viewer;

  /* A heading and a list of lines, or a word for an empty one. */
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

  function hand(states, index, place) {
    const { agents, cards, crafter } = states[0].shared;
    const before = index > 0 ? states[index - 1].hands[place] : [];
    return [
      el(
        "header",
        {},
        Viewer.team.who({ agents }, place),
        crafter === place ? Viewer.chip("crafts the goal", "accent") : null,
      ),
      Viewer.textcraft.carried(states[index].hands[place], before),
      card(cards[place]),
    ];
  }

  /* Who carries what a node of the tree asks for. */
  function holders({ agents }, hands) {
    return (node) => {
      if (!node.have) return null;
      const held = hands.map((pairs) => new Map(pairs).get(node.name));
      return agents.map((agent, place) =>
        held[place] ? el("span", { class: "tc-hint" }, Viewer.team.who({ agents }, place)) : null,
      );
    };
  }

  Viewer.panels.textcraftcoop = {
    title: "Inventories and recipes",
    draw(states, index) {
      const { shared } = states[0];
      const { hands, tree } = states[index];
      return el(
        "div",
        { class: "p-box p-textcraft" },
        el("h3", {}, "Carried"),
        el(
          "div",
          { class: "tc-hands" },
          Viewer.team.crew(shared, "", (place) => hand(states, index, place)),
        ),
        Viewer.textcraft.tree(shared.trees[tree], holders(shared, hands)),
      );
    },
  };
})();
