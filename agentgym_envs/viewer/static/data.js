/* Where the data come from: the server, or the page itself if it is an exported file. */
(function () {
  "use strict";
  const holder = document.getElementById("data");
  const kept = holder ? JSON.parse(holder.textContent) : null;

  class ApiError extends Error {
    constructor(message, status) {
      super(message);
      this.status = status; // 0: nobody answered
    }
  }

  function query(params) {
    const wanted = Object.entries(params || {}).filter(
      ([, value]) => value !== null && value !== undefined && value !== "",
    );
    return wanted.length ? "?" + new URLSearchParams(wanted) : "";
  }

  async function ask(path, params) {
    let answer;
    try {
      answer = await fetch("api/" + path + query(params), { headers: { Accept: "application/json" } });
    } catch (error) {
      throw new ApiError("The viewer’s server does not answer. Is `agentgym view` still running?", 0);
    }
    const body = await answer.json().catch(() => ({ error: `The server answered ${answer.status} without JSON.` }));
    if (!answer.ok) throw new ApiError(body.error || `The server answered ${answer.status}.`, answer.status);
    return body;
  }

  function fromFile(path, params) {
    const [what, id, part] = path.split("/");
    if (what === "summary") return kept.summary;
    if (what === "training") return kept.training || { runs: [] };
    if (id === undefined) return Viewer.local(kept, params || {});
    const found = { undefined: kept.episodes, panels: kept.panels, tokens: kept.tokens }[part];
    if (found && found[id]) return found[id];
    if (part && kept.episodes[id]) return { kind: null, states: [], segments: [], note: "This was not exported." };
    throw new ApiError(`There is no episode ${id} in this file.`, 404);
  }

  /* `path` without the leading /api/: "summary", "episodes", "episodes/12", "episodes/12/panels", ... */
  Viewer.api = async (path, params) => {
    const short = path.replace(/^\/?(api\/)?/, "");
    return kept ? fromFile(short, params) : ask(short, params);
  };
  Viewer.exported = kept !== null;
})();
