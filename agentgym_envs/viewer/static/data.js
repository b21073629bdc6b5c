/* Access to the data: from the server, or from the page itself in an exported file. */
(function () {
  "use strict";
  const element = document.getElementById("data");
  const exportedData = element ? JSON.parse(element.textContent) : null;

  class ApiError extends Error {
    constructor(message, status) {
      super(message);
      this.status = status; // 0: no response
    }
  }

  function query(params) {
    const wanted = Object.entries(params || {}).filter(
      ([, value]) => value !== null && value !== undefined && value !== "",
    );
    return wanted.length ? "?" + new URLSearchParams(wanted) : "";
  }

  async function send(path, options) {
    try {
      return await fetch("api/" + path, options);
    } catch (error) {
      throw new ApiError("The viewer’s server does not respond. Is `agentgym view` still running?", 0);
    }
  }

  async function read(answer) {
    const body = await answer.json().catch(() => ({ error: `The server answered ${answer.status} without JSON.` }));
    if (!answer.ok) throw new ApiError(body.error || `The server answered ${answer.status}.`, answer.status);
    return body;
  }

  const request = async (path, params) =>
    read(await send(path + query(params), { headers: { Accept: "application/json" } }));

  function fromFile(path, params) {
    const [what, id, part] = path.split("/");
    if (what === "summary") return exportedData.summary;
    if (what === "training") return exportedData.training || { runs: [] };
    if (what === "runs") return runs(params);
    if (id === undefined) return Viewer.local(exportedData, params || {});
    const found = { undefined: exportedData.episodes, panels: exportedData.panels, tokens: exportedData.tokens }[part];
    if (found && found[id]) return found[id];
    if (part && exportedData.episodes[id]) return { kind: null, states: [], segments: [], note: "This was not exported." };
    throw new ApiError(`There is no episode ${id} in this file.`, 404);
  }

  function runs(params) {
    const all = exportedData.runs || {};
    if (!params || params.name === undefined) return { runs: Object.values(all) };
    if (!all[params.name]) throw new ApiError(`There is no run ${params.name} in this file.`, 404);
    return all[params.name];
  }

  /* `path` without the leading /api/: "summary", "episodes", "episodes/12", "episodes/12/panels", ... */
  Viewer.api = async (path, params) => {
    const short = path.replace(/^\/?(api\/)?/, "");
    return exportedData ? fromFile(short, params) : request(short, params);
  };
  Viewer.exported = exportedData !== null;

  Viewer.post = async (path, value, headers) => {
    const sent = { "Content-Type": "application/json", ...headers };
    return read(await send(path, { method: "POST", headers: sent, body: JSON.stringify(value) }));
  };

  /* A file that the server makes, as a blob. */
  Viewer.fetchFile = async (path) => {
    const answer = await send(path, {});
    return answer.ok ? answer.blob() : read(answer);
  };

  /* The address of an image that the record of an episode names; null if an exported file lacks it. */
  Viewer.image = (episode, name) => {
    if (name.startsWith("data:")) return name;
    if (exportedData) return exportedData.images[name] || null;
    return `api/episodes/${episode}/images/${name.split("/").pop()}`;
  };
})();
