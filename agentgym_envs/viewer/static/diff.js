/* Differences: the alignment of two episodes, and of two texts. */
(function () {
  "use strict";
  const { el } = Viewer;
  const MOST_CELLS = 1_500_000; // of a table; longer sequences are only compared from both ends
  const CONTEXT = 2; // equal lines around a change
  const MOST_CHARS = 60_000;
  const LEAST_EQUAL = 0.25; // the share of equal lines below which a difference says nothing

  /*
   * Aligns two sequences of which `weigh(i, j)` says how alike two items are (0: not at all). Returns the pairs [i, j] of
   * aligned items in order.
   */
  function align(n, m, weigh) {
    let start = 0;
    while (start < n && start < m && weigh(start, start) > 1) start += 1;
    let end = 0;
    while (end < n - start && end < m - start && weigh(n - 1 - end, m - 1 - end) > 1) end += 1;
    const pairs = Array.from({ length: start }, (_, i) => [i, i]);
    const [rows, columns] = [n - start - end, m - start - end];
    if (rows * columns <= MOST_CELLS) pairs.push(...middle(start, rows, columns, weigh));
    for (let k = end; k > 0; k -= 1) pairs.push([n - k, m - k]);
    return pairs;
  }

  /* The heaviest common subsequence of the part that begins at `start` in both. */
  function middle(start, rows, columns, weigh) {
    const width = columns + 1;
    const best = new Uint32Array((rows + 1) * width);
    for (let i = rows - 1; i >= 0; i -= 1)
      for (let j = columns - 1; j >= 0; j -= 1) {
        const weight = weigh(start + i, start + j);
        const along = weight ? best[(i + 1) * width + j + 1] + weight : 0;
        best[i * width + j] = Math.max(along, best[(i + 1) * width + j], best[i * width + j + 1]);
      }
    const pairs = [];
    for (let i = 0, j = 0; i < rows && j < columns; ) {
      const weight = weigh(start + i, start + j);
      if (weight && best[i * width + j] === best[(i + 1) * width + j + 1] + weight) {
        pairs.push([start + i, start + j]);
        i += 1;
        j += 1;
      } else if (best[(i + 1) * width + j] >= best[i * width + j + 1]) i += 1;
      else j += 1;
    }
    return pairs;
  }

  /* The rows of an alignment: {a, b}, indices or null. Items between aligned ones share rows in order. */
  function rowsOf(n, m, pairs) {
    const rows = [];
    let [i, j] = [0, 0];
    for (const [a, b] of [...pairs, [n, m]]) {
      for (; i < a || j < b; i += i < a, j += j < b) rows.push({ a: i < a ? i : null, b: j < b ? j : null, aligned: false });
      if (a < n && b < m) rows.push({ a, b, aligned: true });
      [i, j] = [a + 1, b + 1];
    }
    return rows;
  }

  const equality = (one, other) => (i, j) => (one[i] === other[j] ? 2 : 0);
  const compareLists = (one, other) => rowsOf(one.length, other.length, align(one.length, other.length, equality(one, other)));
  const words = (text) => text.match(/\s+|[\p{L}\p{N}_]+|[^\s\p{L}\p{N}_]/gu) || [];

  /* Both versions of a changed line: [removed, added], nodes with the changed words marked. */
  function changedLine(before, after) {
    const [one, other] = [words(before), words(after)];
    const [left, right] = [el("span", {}), el("span", {})];
    for (const { a, b, aligned } of compareLists(one, other)) {
      if (a !== null) left.append(aligned ? one[a] : el("del", {}, one[a]));
      if (b !== null) right.append(aligned ? other[b] : el("ins", {}, other[b]));
    }
    return [left, right];
  }

  const lineNode = (kind, sign, content) =>
    el("div", { class: `diff-line ${kind}` }, el("span", { class: "diff-sign", "aria-hidden": "true" }, sign), content);
  const plain = (text) => Viewer.line(text, 2000);

  /* The lines of one row: the same line, a changed one, or one that only one text has. */
  function drawRow(row, one, other) {
    if (row.aligned) return lineNode("same", " ", plain(one[row.a]));
    if (row.a === null) return lineNode("added", "+", plain(other[row.b]));
    if (row.b === null) return lineNode("removed", "−", plain(one[row.a]));
    const short = one[row.a].length + other[row.b].length < 4000;
    const [left, right] = short ? changedLine(one[row.a], other[row.b]) : [plain(one[row.a]), plain(other[row.b])];
    return [lineNode("removed", "−", left), lineNode("added", "+", right)];
  }

  /*
   * The difference of two texts by lines, with changed words marked; equal lines far from a change are left out. It is
   * null if two long texts have little in common.
   */
  function textDiff(before, after) {
    const [one, other] = [before, after].map((text) => text.slice(0, MOST_CHARS).split("\n"));
    const rows = compareLists(one, other);
    const equal = rows.filter((row) => row.aligned).length;
    if (rows.length > 12 && equal < LEAST_EQUAL * rows.length) return null;
    const near = rows.map((_, i) => rows.slice(Math.max(0, i - CONTEXT), i + CONTEXT + 1).some((row) => !row.aligned));
    const nodes = [];
    let skipped = 0;
    const flush = () => {
      if (skipped) nodes.push(el("div", { class: "diff-skip dim" }, `${Viewer.plural(skipped, "equal line")}`));
      skipped = 0;
    };
    rows.forEach((row, i) => {
      if (!near[i]) return (skipped += 1);
      flush();
      return nodes.push(drawRow(row, one, other));
    });
    flush();
    return el("div", { class: "diff mono", dir: "auto" }, nodes);
  }

  Viewer.diff = { align, rowsOf, textDiff };
})();
