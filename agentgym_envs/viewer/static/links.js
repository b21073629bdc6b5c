/* Links to episodes that stay valid: the number of an episode, and the mark of its record, which finds it again. */
(function () {
  "use strict";
  const { el } = Viewer;

  /* The reference of an episode in an address: its number, and the mark of its record if that is known. */
  const reference = ({ row, mark }) => (mark ? `${row.id}~${mark}` : String(row.id));

  /* The number of the episode of a reference. The number in it may have become that of another episode. */
  async function find(text) {
    const [id, mark] = String(text).split("~");
    if (!mark || Viewer.exported) return id;
    return (await Viewer.api(`find/${id}/${mark}`)).id;
  }

  /* A button that copies the address that `address` returns, a hash. */
  function button(address) {
    const made = el("button", { class: "button small", type: "button", title: "Copy a link to this place", on: { click: copy } }, "Link");
    function copy() {
      const show = (text) => {
        made.textContent = text;
        setTimeout(() => (made.textContent = "Link"), 1600);
      };
      history.replaceState(null, "", address());
      navigator.clipboard.writeText(location.href).then(
        () => show("Copied"),
        () => show("In the address bar"), // the browser does not allow this page to copy
      );
    }
    return made;
  }

  Viewer.links = { reference, find, button };
})();
