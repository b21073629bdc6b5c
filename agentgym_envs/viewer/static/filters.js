/* The filters of the list: one set of fields, kept in the address. */
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
    min_turns: "Turns from",
    max_turns: "Turns to",
    min_score: "Score from",
    max_score: "Score to",
  };
  const HUNT = "M7 2.5a4.5 4.5 0 1 0 0 9a4.5 4.5 0 0 0 0-9M10.3 10.3L14 14";
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
    if (key === "stop") return summary.stops.map((name) => [name, Viewer.words.stop(name).short]);
    if (key === "env") return summary.envs.map((name) => [name, Viewer.words.env(name)]);
    const plain = {
      group: groupsOf(summary, state.env),
      policy: summary.policies,
      step: summary.steps,
      source: summary.sources.map((source) => source.name),
    }[key];
    return plain.map((name) => [String(name), String(name)]);
  }

  function select(key, summary, state, change) {
    const options = choices(key, summary, state);
    const value = state[key] || "";
    if (value && !options.some(([name]) => name === value)) options.push([value, value]); // kept out of a link
    if (options.length < 2 && !value) return null;
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

  function range(key, props, state, change) {
    const bound = (side, label) => {
      const name = `${side}_${key}`;
      const on = { change: (event) => change({ [name]: event.target.value }) };
      return el("input", {
        class: "field",
        type: "number",
        name,
        value: state[name] || "",
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

  function search(state, change) {
    let waiting = 0;
    const send = (event) => change({ q: event.target.value });
    const on = {
      input: (event) => {
        clearTimeout(waiting);
        waiting = setTimeout(() => send(event), TYPING_MS);
      },
      keydown: (event) => {
        if (event.key === "Escape") event.target.blur();
      },
    };
    const field = el("input", {
      class: "field",
      type: "search",
      name: "q",
      value: state.q || "",
      placeholder: "Search all that was told or written",
      "aria-label": "Search text",
      autocomplete: "off",
      spellcheck: "false",
      on,
    });
    return el("div", { class: "hunt" }, icon(HUNT), field);
  }

  function shownValue(key, value) {
    if (key === "success") return value === "1" ? "Success" : "No success";
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
          "aria-label": `Drop the filter ${text}`,
          on: { click: () => change({ [key]: "" }) },
        },
        Viewer.line(text, 60),
        " ✕",
      );
    };
    const none = Object.fromEntries(keys.map((key) => [key, ""]));
    const clear = el("button", { class: "more", type: "button", on: { click: () => change(none) } }, "Clear all");
    return el("div", { class: "active", role: "group", "aria-label": "Filters in use" }, keys.map(drop), clear);
  }

  /* Draws into `form`; `change` takes the fields that changed. The search field is kept, as somebody may be typing. */
  Viewer.filters = (form, summary, state, change) => {
    const parts = form.querySelectorAll(".quick, .extra, .toggle, .active");
    parts.forEach((part) => part.remove());
    const field = form.querySelector('[name="q"]');
    if (!field) form.prepend(search(state, change));
    else if (field !== document.activeElement) field.value = state.q || "";
    const pick = (key) => select(key, summary, state, change);
    const toggle = el(
      "button",
      {
        class: "button toggle",
        type: "button",
        "aria-expanded": String(form.classList.contains("open")),
        on: { click: flip },
      },
      "More filters",
    );
    function flip() {
      toggle.setAttribute("aria-expanded", String(form.classList.toggle("open")));
    }
    form.append(
      ...[
        el("div", { class: "quick" }, ["env", "group", "success", "stop"].map(pick)),
        toggle,
        el(
          "div",
          { class: "extra" },
          ["policy", "step", "source"].map(pick),
          range("turns", { min: 0, step: 1 }, state, change),
          range("score", { min: 0, max: 1, step: 0.05 }, state, change),
        ),
        active(state, change),
      ].filter(Boolean),
    );
  };
  Viewer.filters.keys = Object.keys(NAMES);
})();
