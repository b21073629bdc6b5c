/* The filters of the list, which are stored in the address. */
(function () {
  "use strict";
  const { el, icon } = Viewer;
  const NAMES = {
    q: "Text",
    env: "Environment",
    group: "Group",
    success: "Outcome",
    stop: "Stopped by",
    policy: "Policy",
    step: "Training step",
    source: "Source",
    task: "Task",
    seed: "Seed",
    tag: "Tag",
    noted: "Notes",
    min_turns: "Turns from",
    max_turns: "Turns to",
    min_score: "Score from",
    max_score: "Score to",
  };
  const SEARCH_ICON = "M7 2.5a4.5 4.5 0 1 0 0 9a4.5 4.5 0 0 0 0-9M10.3 10.3L14 14";
  const TYPING_MS = 250;

  function groupsOf(summary, env) {
    const groups = summary.groups || {};
    return env ? groups[env] || [] : [...new Set(Object.values(groups).flat())];
  }

  function choices(key, summary, state) {
    if (key === "success")
      return [
        ["1", "Success"],
        ["0", "No success"],
      ];
    if (key === "noted")
      return summary.noted
        ? [
            ["1", "With a note or tag"],
            ["0", "Without"],
          ]
        : [];
    if (key === "stop") return summary.stops.map((name) => [name, Viewer.words.stop(name).short]);
    if (key === "env") return summary.envs.map((name) => [name, Viewer.words.env(name)]);
    const plain = {
      group: groupsOf(summary, state.env),
      policy: summary.policies,
      step: summary.steps,
      source: summary.sources.map((source) => source.name),
      tag: summary.tags || [],
    }[key];
    return plain.map((name) => [String(name), String(name)]);
  }

  function select(key, summary, state, change) {
    const options = choices(key, summary, state);
    const value = state[key] || "";
    if (value && !options.some(([name]) => name === value)) options.push([value, value]); // a value from a link
    if (options.length < (key === "tag" ? 1 : 2) && !value) return null;
    const any = { success: "outcome", stop: "reason to stop" }[key] || NAMES[key].toLowerCase();
    const all = el("option", { value: "" }, `Any ${any}`);
    const field = el(
      "select",
      {
        class: `field${value ? " set" : ""}`,
        name: key,
        "aria-label": NAMES[key],
        on: { change: (event) => change({ [key]: event.target.value }) },
      },
      all,
      options.map(([name, text]) => el("option", { value: name, selected: name === value }, text)),
    );
    field.value = value;
    return field;
  }

  /* Handlers that apply typed text after a pause, or at once when the field loses the focus. */
  function typed(name, change) {
    let waiting = 0;
    const send = ({ target }) => {
      clearTimeout(waiting);
      change({ [name]: target.value });
    };
    return {
      input: (event) => {
        clearTimeout(waiting);
        waiting = setTimeout(() => event.target.isConnected && send(event), TYPING_MS);
      },
      change: send,
    };
  }

  function range(key, props, change) {
    const bound = (side, label) => {
      const name = `${side}_${key}`;
      const on = typed(name, change);
      return el("input", {
        class: "field",
        type: "number",
        name,
        "aria-label": NAMES[name],
        placeholder: label,
        ...props,
        on,
      });
    };
    const title = key === "turns" ? "Turns" : "Score";
    return el(
      "div",
      { class: "range", role: "group", "aria-label": title },
      el("span", { class: "dim" }, title),
      bound("min", "from"),
      bound("max", "to"),
    );
  }

  function search(change) {
    const on = {
      ...typed("q", change),
      keydown: (event) => {
        if (event.key === "Escape") event.target.blur();
      },
    };
    const field = el("input", {
      class: "field",
      type: "search",
      name: "q",
      placeholder: "Search in all observations, answers and instructions",
      "aria-label": "Search text",
      autocomplete: "off",
      spellcheck: "false",
      on,
    });
    return el("div", { class: "search-box" }, icon(SEARCH_ICON), field);
  }

  function shownValue(key, value) {
    if (key === "success") return value === "1" ? "Success" : "No success";
    if (key === "noted") return value === "1" ? "some" : "none";
    if (key === "env") return Viewer.words.env(value);
    return key === "stop" ? Viewer.words.stop(value).short : value;
  }

  function active(state, change) {
    const keys = Object.keys(NAMES).filter((key) => state[key]);
    if (!keys.length) return null;
    const drop = (key) => {
      const text = `${NAMES[key]}: ${shownValue(key, state[key])}`;
      return el(
        "button",
        {
          class: "chip accent",
          type: "button",
          "aria-label": `Remove the filter ${text}`,
          on: { click: () => change({ [key]: "" }) },
        },
        Viewer.line(text, 60),
        " ✕",
      );
    };
    const none = Object.fromEntries(Object.keys(NAMES).map((key) => [key, ""]));
    const clear = el("button", { class: "more", type: "button", on: { click: () => change(none) } }, "Clear all");
    return el("div", { class: "active", role: "group", "aria-label": "Filters in use" }, keys.map(drop), clear);
  }

  /* Replaces the fields. A field that is equal, or has the focus, is kept. */
  function replaceFields(holder, fields) {
    const before = [...holder.children];
    const same = (one, other) =>
      one.isEqualNode(other) || (one.contains(document.activeElement) && one.name === other.name);
    const fieldsNow = fields.filter(Boolean).map((field) => {
      const kept = before.find((one) => same(one, field));
      return kept ? Object.assign(kept, { className: field.className, value: field.value }) : field;
    });
    before.forEach((one) => fieldsNow.includes(one) || one.remove());
    fieldsNow.forEach((one, i) => holder.children[i] === one || holder.insertBefore(one, holder.children[i] || null));
  }

  /* Draws into `form`; `change` receives the changed fields. */
  Viewer.filters = (form, summary, state, change) => {
    if (!form.children.length) frame(form, change);
    const pick = (key) => select(key, summary, state, change);
    const [quick, extra] = form.querySelectorAll(".quick, .choice");
    replaceFields(quick, ["env", "group", "success", "stop"].map(pick));
    replaceFields(extra, ["policy", "step", "source", "tag", "noted"].map(pick));
    for (const field of form.querySelectorAll("input"))
      if (field !== document.activeElement) field.value = state[field.name] || "";
    form.querySelectorAll(".active").forEach((part) => part.remove());
    form.append(...[active(state, change)].filter(Boolean));
  };

  /* Makes the elements that stay as long as the list is open. */
  function frame(form, change) {
    const flip = () => toggle.setAttribute("aria-expanded", String(form.classList.toggle("open")));
    const props = { class: "button toggle", type: "button", "aria-expanded": "false", on: { click: flip } };
    const toggle = el("button", props, "More filters");
    const turns = range("turns", { min: 0, step: 1 }, change);
    const score = range("score", { min: 0, max: 1, step: 0.05 }, change);
    const extra = el("div", { class: "extra" }, el("div", { class: "choice" }), turns, score);
    form.append(search(change), el("div", { class: "quick" }), toggle, extra);
  }

  Viewer.filters.keys = Object.keys(NAMES);
})();
