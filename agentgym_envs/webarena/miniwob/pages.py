"""MiniWoB++'s pages: those that can be solved by text, in groups, and why the others cannot.

A page is solvable here if an agent that sees nothing but the text of the observation can solve it by clicking, typing,
pressing keys and scrolling: no coordinates, no dragging, no colour or shape that no text tells, no race with the clock.
"""

from __future__ import annotations

GROUP_PAGES: dict[str, tuple[str, ...]] = {
    "click": (
        "click-button",
        "click-button-sequence",
        "click-dialog",
        "click-dialog-2",
        "click-link",
        "click-test",
        "click-test-2",
        "click-test-transfer",
        "click-widget",
        "focus-text",
        "focus-text-2",
        "unicode-test",
    ),
    "choose": (
        "choose-list",
        "click-checkboxes",
        "click-checkboxes-large",
        "click-checkboxes-soft",
        "click-checkboxes-transfer",
        "click-option",
        "click-scroll-list",
        "odd-or-even",
        "order-food",
    ),
    "type": (
        "copy-paste",
        "copy-paste-2",
        "enter-date",
        "enter-password",
        "enter-text",
        "enter-text-2",
        "enter-text-dynamic",
        "enter-time",
        "terminal",
        "text-transform",
        "use-autocomplete",
        "use-autocomplete-nodelay",
    ),
    "form": (
        "form-sequence",
        "form-sequence-2",
        "form-sequence-3",
        "login-user",
        "login-user-popup",
        "multi-layouts",
        "multi-orderings",
        "sign-agreement",
    ),
    "read": (
        "buy-ticket",
        "find-greatest",
        "find-word",
        "read-table",
        "read-table-2",
        "scroll-text",
        "simple-algebra",
        "simple-arithmetic",
    ),
    "unfold": (
        "click-collapsible",
        "click-collapsible-2",
        "click-collapsible-2-nodelay",
        "click-collapsible-nodelay",
        "click-menu",
        "click-menu-2",
        "click-pie",
        "click-pie-nodelay",
        "click-tab",
        "click-tab-2",
        "click-tab-2-easy",
        "click-tab-2-hard",
        "click-tab-2-medium",
        "navigate-tree",
    ),
    "adjust": ("scroll-text-2", "use-slider", "use-slider-2", "use-spinner"),
    "email": (
        "email-inbox",
        "email-inbox-delete",
        "email-inbox-forward",
        "email-inbox-forward-nl",
        "email-inbox-forward-nl-turk",
        "email-inbox-important",
        "email-inbox-nl-turk",
        "email-inbox-noscroll",
        "email-inbox-reply",
        "email-inbox-star-reply",
    ),
    "social": ("social-media", "social-media-all", "social-media-some"),
    "search": ("phone-book", "search-engine"),
    "date": (
        "book-flight",
        "book-flight-nodelay",
        "choose-date",
        "choose-date-easy",
        "choose-date-medium",
        "choose-date-nodelay",
    ),
    "play": ("generate-number", "guess-number", "tic-tac-toe"),
}
GROUP_OF: dict[str, str] = {page: group for group, pages in GROUP_PAGES.items() for page in pages}
PAGES: tuple[str, ...] = tuple(GROUP_OF)

_DRAG, _PLACE, _TIME = "needs dragging", "needs a point that only coordinates name", "races with the clock"
_SHAPE, _COLOUR = "asks for shapes that no text tells", "asks for colours that no text tells"
LEFT_OUT: dict[str, str] = {
    "ascending-numbers": "the numbers vanish, and only their places tell what was where",
    "bisect-angle": _PLACE,
    "button-delay": _TIME,
    "chase-circle": _TIME,
    "circle-center": _PLACE,
    "click-color": _COLOUR,
    "click-shades": _COLOUR,
    "click-shape": _SHAPE,
    "count-shape": _SHAPE,
    "count-sides": _SHAPE,
    "daily-calendar": _DRAG,
    "drag-box": _DRAG,
    "drag-circle": _DRAG,
    "drag-cube": _DRAG,
    "drag-items": _DRAG,
    "drag-items-grid": _DRAG,
    "drag-shapes": _DRAG,
    "drag-shapes-2": _DRAG,
    "drag-single-shape": _DRAG,
    "drag-sort-numbers": _DRAG,
    "draw-circle": _DRAG,
    "draw-line": _DRAG,
    "find-midpoint": _PLACE,
    "grid-coordinate": _PLACE,
    "highlight-text": _DRAG,
    "highlight-text-2": _DRAG,
    "hot-cold": _PLACE,
    "hover-shape": _TIME,
    "identify-shape": _SHAPE,
    "moving-items": _TIME,
    "number-checkboxes": _SHAPE,
    "resize-textarea": _DRAG,
    "right-angle": _PLACE,
    "simon-says": _TIME,
    "stock-market": _TIME,
    "text-editor": "asks for a selection, which no text tells",
    "use-colorwheel": "pays nearly in full for any colour",
    "use-colorwheel-2": _COLOUR,
    "visual-addition": "asks to count drawn blocks that no text tells",
}

HIDDEN = (
    *("#reward-display", "#click-canvas", "#attention-canvas", "#sync-task-cover"),
    "#divWheel path",  # the slices of a pie menu, whose labels are told
    ".selectric-input",  # takes the keys for a list of options
)
"""What MiniWoB puts beside a task (the last reward, the marks of clicks, the cover that starts another episode), and a
little that is told otherwise."""

_BOARD = tuple(
    (f"#ttt-{place}{mark}", "button", f"row {place // 3 + 1} column {place % 3 + 1}: {holds}")
    for place in range(9)
    for mark, holds in (("", "empty"), (".mark-x", "X"), (".mark-o", "O"))
)
NAMES: tuple[tuple[str, str, str | None], ...] = (
    (".alink, #contact a", "link", None),
    (".final, .ui-submit", "button", None),
    (".trash", "button", "trash"),
    (".star", "button", "star"),
    ("#open-search", "button", "search"),
    ("#search-cancel, #close-email, #close-reply, #close-forward", "button", "back"),
    (".email-reply, .email-forward", "button", None),
    ("#send-reply, #send-forward", "button", "send"),
    (".controls > .reply", "button", "Reply"),
    (".controls > .retweet", "button", "Retweet"),
    (".controls > .like", "button", "Like"),
    (".controls > .share", "button", "Share"),
    (".more", "button", "more"),
    (".media li", "menuitem", None),
    (".food-order > .add, .food-order > .remove", "button", None),
    (".folder, .file", "treeitem", None),
    ("#divWheel text", "menuitem", None),
    (".card", "button", None),
    (".card.hidden", "button", "hidden card"),
    *_BOARD,
    (".ui-menu", "none", None),
    (".ui-slider-handle", "slider", "slider"),
    (".ui-autocomplete .ui-menu-item", "menuitem", None),
    (".ui-datepicker-prev, .ui-datepicker-next", "button", None),
    ("textarea[data-type]", "textbox", "textarea"),
    ("input[data-type=text]", "textbox", "text"),
    (".ui-icon-disk", "img", "disk"),
    (".ui-icon-seek-start", "img", "skip to the start"),
    (".ui-icon-stop", "img", "stop"),
    (".ui-icon-play", "img", "play"),
    (".ui-icon-seek-end", "img", "skip to the end"),
    (".ui-icon-print", "img", "printer"),
    (".ui-icon-zoomin", "img", "magnifying glass with a plus"),
    (".ui-icon-zoomout", "img", "magnifying glass with a minus"),
    (".selectric", "combobox", "dropdown"),
    (".selectric-items li", "option", None),
)
"""What the pages show by pictures, styles or listeners only: selector, role and, where no text stands there, a name.

Of the rows that an element matches, the last counts. It is what a blind user's screen reader would need.
"""
STATES: tuple[tuple[str, str, str], ...] = (
    (".controls > .reply, .controls > .retweet, .controls > .like, .controls > .share", "aria-pressed", ".active"),
    (".star", "aria-pressed", ".clicked"),
    (".odd, .even", "aria-pressed", ".selected"),
    (".expandable > .folder, .collapsable > .folder", "aria-expanded", ".collapsable > .folder"),
    (".selectric", "aria-expanded", ".selectric-open > .selectric"),
    (".selectric-items li", "aria-selected", ".selected"),
    ("#pagination a", "aria-current", ".active > a"),
)
"""What is shown by colours and pictures only: selector, the attribute that tells it, and who it is true of."""
_STILL_WHEEL = """
// Under the mouse it moves its parts, and the click is lost.
wheelnavItem.prototype.hoverEffect = () => {};
const make = Raphael.animation;
Raphael.animation = (aim, time, ...more) => make(aim, 0, ...more);
"""
_PLAIN_LINES = """for (const name of ['generateTerminalLine', 'generateTerminalOutput']) {
  const write = window[name];
  window[name] = text => write($('<i>').text(text).html());
}"""
BEFORE: dict[str, str] = {
    "click-pie": _STILL_WHEEL,
    "click-pie-nodelay": _STILL_WHEEL,
    "terminal": _PLAIN_LINES,  # which put what was typed into the page as HTML, scripts included
}
"""JavaScript that a page needs before its task is made."""
_CROSS = "$('.ui-dialog-titlebar-close').contents().last().replaceWith('x')"
AFTER: dict[str, str] = {
    # The button that is asked for as the x, and is drawn so.
    "click-dialog": _CROSS,
    "click-dialog-2": _CROSS,
    # A cursor that blinks, and a focus that comes late.
    "terminal": "clearInterval(flicker); $('#input-flicker').hide(); $('#terminal-target').focus()",
}
"""And afterwards."""
