/* Filters and sorts the episodes of an exported file, like the server for a folder. */
(function () {
  "use strict";
  const EXACT = ["env", "group", "stop", "policy", "source", "task", "seed"];
  const RANGES = [
    ["min_turns", "turns", 1],
    ["max_turns", "turns", -1],
    ["min_score", "score", 1],
    ["max_score", "score", -1],
  ];
  let texts = null;

  function textOf(detail) {
    const { row } = detail;
    const found = [row.goal, row.task, detail.instructions, detail.final_observation, detail.error || ""];
    const { turns, instructions, final } = detail.team || { turns: [], instructions: [], final: null };
    const parts = turns.flatMap(({ cells }) => cells.flatMap((cell) => [cell.observation, cell.action]));
    found.push(...[...instructions, ...(final || []), ...parts].filter((text) => text !== null));
    for (const attempt of [detail, ...detail.attempts]) {
      found.push(attempt.lesson || "");
      for (const turn of attempt.turns) found.push(turn.observation, turn.action);
    }
    return found.map((text) => text.toLowerCase());
  }

  function matches(row, params) {
    if (EXACT.some((key) => params[key] && String(row[key] ?? "") !== params[key])) return false;
    if (params.success && row.success !== (params.success === "1")) return false;
    if (params.step && String(row.step) !== params.step) return false;
    if (params.tag && !row.tags.includes(params.tag)) return false;
    if (params.noted && (row.noted || row.tags.length > 0) !== (params.noted === "1")) return false;
    return RANGES.every(([key, field, sign]) => !params[key] || (row[field] - Number(params[key])) * sign >= 0);
  }

  /* Sorts by value, then by number; rows without the value come last in both directions. */
  function order(key, sign) {
    return (one, other) => {
      const [a, b] = [one[key], other[key]];
      const known = (a !== null && a !== undefined) - (b !== null && b !== undefined);
      if (known || a === null || a === undefined) return -known || one.id - other.id;
      return a === b ? one.id - other.id : a < b ? -sign : sign;
    };
  }

  /* Means over the usable episodes; null without one. */
  function meansOf(rows) {
    const usable = rows.filter((row) => row.stop !== "env_error" && row.turns);
    const mean = (value) => usable.reduce((sum, row) => sum + value(row), 0) / usable.length;
    if (!usable.length) return null;
    const [success, score, turns] = [(row) => Number(row.success), (row) => row.score, (row) => row.turns].map(mean);
    return { episodes: usable.length, success, score, turns };
  }

  Viewer.local = (data, params) => {
    const key = params.sort || "id";
    const sign = String(params.desc || "0") === "1" ? -1 : 1;
    const wanted = (params.q || "").toLowerCase();
    if (wanted && !texts) texts = new Map(Object.entries(data.episodes).map(([id, detail]) => [id, textOf(detail)]));
    const rows = data.rows.filter(
      (row) =>
        matches(row, params) && (!wanted || (texts.get(String(row.id)) || []).some((text) => text.includes(wanted))),
    );
    rows.sort(order(key, sign));
    const offset = Number(params.offset || 0);
    const limit = Number(params.limit || 100);
    const shown = rows.slice(offset, offset + limit);
    return { version: data.summary.version, total: rows.length, rows: shown, means: meansOf(rows) };
  };
})();
