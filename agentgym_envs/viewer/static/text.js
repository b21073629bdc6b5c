/* Text of episodes: invisible characters are shown in boxes, and very long text is folded. */
(function () {
  "use strict";
  const FOLD = 6000; // characters
  const LINES = 24;
  const MOST_BOXES = 2000; // per text; a megabyte of control characters must not become a million elements
  // Controls except tab and line feed, bidi controls, invisible spaces, unused joiners, tags, lone surrogates.
  const ODD = new RegExp(
    "[\\u0000-\\u0008\\u000b-\\u001f\\u007f-\\u009f\\u00ad\\u034f\\u061c\\u115f\\u1160\\u180e\\u200b\\u200e\\u200f" +
      "\\u2028-\\u202e\\u2060-\\u206f\\u3164\\ufeff\\uffa0\\ufff9-\\ufffc\\u{e0000}-\\u{e007f}\\p{Cs}]" +
      "|(?<![\\p{L}\\p{M}\\p{Extended_Pictographic}\\p{Emoji_Modifier}\\ufe0f])[\\u200c\\u200d]",
    "gu",
  );
  const NAMES = {
    0: "NUL",
    8: "BS",
    13: "CR",
    27: "ESC",
    127: "DEL",
    0xad: "SHY",
    0x61c: "ALM",
    0x200b: "ZWSP",
    0x200c: "ZWNJ",
    0x200d: "ZWJ",
    0x200e: "LRM",
    0x200f: "RLM",
    0x2028: "LSEP",
    0x2029: "PSEP",
    0x202a: "LRE",
    0x202b: "RLE",
    0x202c: "PDF",
    0x202d: "LRO",
    0x202e: "RLO",
    0x2060: "WJ",
    0x2066: "LRI",
    0x2067: "RLI",
    0x2068: "FSI",
    0x2069: "PDI",
    0xfeff: "BOM",
  };

  function box(character) {
    const code = character.codePointAt(0);
    const hex = "U+" + code.toString(16).toUpperCase().padStart(4, "0");
    return Viewer.el("span", { class: "odd", title: `${hex}, an invisible character` }, NAMES[code] || hex);
  }

  /* Browsers lay out very long words in quadratic time, so they get break opportunities. */
  function addPlain(node, text) {
    if (text.length < 1000) return node.append(text);
    text
      .split(/(\S{500})/u)
      .forEach((piece, i) => node.append(piece, ...(i % 2 ? [document.createElement("wbr")] : [])));
  }

  /* Adds text to `node`, with boxes; `room.boxes` is the number of boxes left. */
  function addText(node, text, room) {
    let at = 0;
    for (const match of text.matchAll(ODD)) {
      if (room.boxes === 0) return addPlain(node, text.slice(at).replace(ODD, "\ufffd"));
      room.boxes -= 1;
      if (match.index > at) addPlain(node, text.slice(at, match.index));
      node.append(box(match[0]));
      at = match.index + match[0].length;
    }
    if (at < text.length) addPlain(node, text.slice(at));
  }

  /* Like `addText`, with marked search hits. */
  function addFound(node, text, find, room) {
    const low = find ? text.toLowerCase() : "";
    if (!find || low.length !== text.length) return addText(node, text, room); // some letters change their length
    const wanted = find.toLowerCase();
    let at = 0;
    for (let next = low.indexOf(wanted), n = 0; next >= 0 && n < 500; next = low.indexOf(wanted, at), n += 1) {
      addText(node, text.slice(at, next), room);
      const mark = Viewer.el("mark", {});
      addText(mark, text.slice(next, next + wanted.length), room);
      node.append(mark);
      at = next + wanted.length;
    }
    addText(node, text.slice(at), room);
  }

  /* The end of line number `lines`, if there are at least seven more lines; else the end of the text. */
  function lineEnd(text, lines) {
    let at = -1;
    for (let n = 0; n < lines; n += 1) {
      at = text.indexOf("\n", at + 1);
      if (at < 0) return text.length;
    }
    return text.slice(at + 1).split("\n", 7).length > 6 ? at : text.length;
  }

  /* The position of the fold: after a number of characters or lines, or the first hit; never inside a surrogate pair. */
  function foldAt(text, limit, lines, find) {
    const hit = find ? text.toLowerCase().indexOf(find.toLowerCase()) : -1;
    const short = text.length <= limit + 200 ? text.length : limit;
    const end = Math.max(Math.min(short, lineEnd(text, lines)), hit < 0 ? 0 : hit + find.length + 200);
    return /[\ud800-\udbff]/.test(text.charAt(end - 1)) ? end + 1 : end;
  }

  Viewer.text = (value, { find = "", limit = FOLD, lines = LINES } = {}) => {
    const text = String(value);
    const node = Viewer.el("span", { class: "text" });
    const end = foldAt(text, limit, lines, find);
    if (text.length <= end) {
      addFound(node, text, find, { boxes: MOST_BOXES });
      return node;
    }
    const shown = Viewer.el("span", {});
    addFound(shown, text.slice(0, end), find, { boxes: MOST_BOXES });
    const left = text.length - end;
    const several = text.slice(end).split("\n").length;
    const kind = several > 2 ? "more below" : "more";
    const rest = several > 2 ? `${Viewer.count(several - 1)} more lines` : `${Viewer.count(left)} more characters`;
    const more = Viewer.el("button", { class: kind, type: "button", on: { click: showAll } }, `Show all, ${rest}`);
    function showAll() {
      node.replaceChildren();
      addFound(node, text, find, { boxes: MOST_BOXES });
    }
    node.append(shown, several > 2 ? "" : " … ", more);
    return node;
  };

  /* Text as one short line, with boxes for invisible characters. */
  Viewer.line = (value, limit = 300) => {
    const text = String(value)
      .slice(0, limit * 4)
      .replace(/\s+/g, " ")
      .trim();
    const node = Viewer.el("span", { class: "line" });
    addText(node, text.length > limit ? text.slice(0, limit) + "…" : text, { boxes: 40 });
    return node;
  };
})();
