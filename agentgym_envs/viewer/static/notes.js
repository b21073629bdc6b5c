/* The note and the tags of an episode, and the buttons that save it as a file. */
(function () {
  "use strict";
  const { el, fill } = Viewer;
  const MOST_CHARS = 10000;
  let session = null;

  /* The token of writes; it is read once. */
  const token = () => (session = session || Viewer.api("session"));

  const tagsOf = (text) => [...new Set(text.split(",").map((tag) => tag.trim()).filter(Boolean))];
  const tags = (list) =>
    list.map((tag) => el("a", { class: "chip accent tag", href: Viewer.address("", { tag }) }, Viewer.line(tag, 40)));

  async function post(id, note) {
    const { token: given, why } = await token();
    if (!given) throw new Error(why);
    return Viewer.post(`episodes/${id}/note`, note, { "X-AgentGym-Token": given });
  }

  /* The note of an episode: shown, or edited in place. */
  function draw(detail) {
    const holder = el("section", { class: "note-box", "aria-label": "Note" });
    show(holder, detail);
    return holder;
  }

  function show(holder, detail) {
    const { note } = detail;
    const empty = !note.text && !note.tags.length;
    const edit = el("button", { class: "button small bare", type: "button", on: { click: () => form(holder, detail) } });
    edit.textContent = empty ? "Add a note or tags" : "Edit";
    fill(
      holder,
      tags(note.tags),
      note.text ? el("p", { class: "note-text" }, Viewer.text(note.text, { lines: 6 })) : null,
      Viewer.exported ? null : edit,
    );
    holder.classList.toggle("filled", !empty);
  }

  function form(holder, detail) {
    const { note, row } = detail;
    const text = el("textarea", { class: "field", rows: 4, maxlength: MOST_CHARS, "aria-label": "Note" });
    const list = el("input", { class: "field", "aria-label": "Tags, separated by commas", placeholder: "tags, separated, by commas" });
    [text.value, list.value] = [note.text, note.tags.join(", ")];
    const status = el("span", { class: "note-status", role: "alert" });
    const cancel = () => show(holder, detail);
    const save = async (event) => {
      event.preventDefault();
      status.textContent = "Saving…";
      try {
        const wanted = { text: text.value, tags: tagsOf(list.value), version: note.version };
        detail.note = await post(row.id, wanted);
        Object.assign(row, { tags: detail.note.tags, noted: Boolean(detail.note.text) });
        show(holder, detail);
      } catch (error) {
        status.textContent = error.status === 409 ? `${error.message}. Copy your text and load the page again.` : error.message;
      }
    };
    const escape = (event) => {
      if (event.key === "Escape") cancel();
      if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) save(event);
    };
    const buttons = el(
      "div",
      { class: "note-buttons" },
      el("button", { class: "button small", type: "submit" }, "Save"),
      el("button", { class: "button small bare", type: "button", on: { click: cancel } }, "Cancel"),
      status,
    );
    fill(holder, el("form", { class: "note-form", on: { submit: save, keydown: escape } }, text, list, buttons));
    text.focus();
  }

  /* Buttons that save the episode as one HTML page and as an animation. */
  function files(row) {
    if (Viewer.exported) return null;
    const one = (ending, text, title) => {
      const made = el("button", { class: "button small", type: "button", title, on: { click: () => download(made, row.id, ending, text) } }, text);
      return made;
    };
    return [
      one("html", "Save HTML", "One file to send: it opens without a server and loads nothing"),
      one("gif", "Save GIF", "An animation, one frame per turn"),
    ];
  }

  async function download(button, id, ending, text) {
    button.disabled = true;
    button.textContent = "Making…";
    try {
      const blob = await Viewer.fetchFile(`episodes/${id}/episode.${ending}`);
      const link = el("a", { href: URL.createObjectURL(blob), download: `episode-${id}.${ending}` });
      link.click();
      setTimeout(() => URL.revokeObjectURL(link.href), 60000);
      button.textContent = text;
    } catch (error) {
      button.textContent = text;
      button.after(el("span", { class: "note-status", role: "alert" }, error.message));
    }
    button.disabled = false;
  }

  Viewer.notes = { draw, tags, files };
})();
