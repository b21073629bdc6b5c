"""MiniWoB++'s pages: the ones that text can solve, in groups, and the others with the reasons for leaving them out.

An agent must be able to solve a page from the text of the observation, by clicks, typing, keys and scrolling. Pages
that need coordinates, dragging, colours or shapes without a text, or a race against the clock are left out.
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

_DRAG, _POINT, _TIME = "needs dragging", "needs a point that only coordinates describe", "is a race against the clock"
_SHAPE, _COLOUR = "asks for shapes that no text describes", "asks for colours that no text describes"
LEFT_OUT: dict[str, str] = {
    "ascending-numbers": "asks for numbers that vanish, by their positions",
    "bisect-angle": _POINT,
    "button-delay": _TIME,
    "chase-circle": _TIME,
    "circle-center": _POINT,
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
    "find-midpoint": _POINT,
    "grid-coordinate": _POINT,
    "highlight-text": _DRAG,
    "highlight-text-2": _DRAG,
    "hot-cold": _POINT,
    "hover-shape": _TIME,
    "identify-shape": _SHAPE,
    "moving-items": _TIME,
    "number-checkboxes": _SHAPE,
    "resize-textarea": _DRAG,
    "right-angle": _POINT,
    "simon-says": _TIME,
    "stock-market": _TIME,
    "text-editor": "asks for a selection, which no text describes",
    "use-colorwheel": "pays nearly in full for any colour",
    "use-colorwheel-2": _COLOUR,
    "visual-addition": "asks for a count of drawn blocks that no text describes",
}

HIDDEN = (
    *("#reward-display", "#click-canvas", "#attention-canvas", "#sync-task-cover"),
    "#divWheel path",  # the slices of a pie menu; their labels are elements of their own
    ".selectric-input",  # the keyboard input of a list of options
)
"""Elements left out of the observation: MiniWoB's own displays around a task, and duplicates of other elements."""

_BOARD = tuple(
    (f"#ttt-{cell}{mark}", "button", f"row {cell // 3 + 1} column {cell % 3 + 1}: {content}")
    for cell in range(9)
    for mark, content in (("", "empty"), (".mark-x", "X"), (".mark-o", "O"))
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
"""Roles of elements that only images, styles or listeners describe: selector, role, and a name if there is no text.

The last matching row applies to an element. A screen reader would need the same.
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
"""States that only colours and images show: selector, ARIA attribute, and the selector for which it is true."""
_STILL_WHEEL = """
// Its hover effect moves the slices, and a click would miss.
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
    "terminal": _PLAIN_LINES,  # the page inserts typed text as HTML, including scripts
}
"""JavaScript to run on a page before its task is generated."""
_CROSS = "$('.ui-dialog-titlebar-close').contents().last().replaceWith('x')"
AFTER: dict[str, str] = {
    # The objective calls this button "x", which is also what it shows.
    "click-dialog": _CROSS,
    "click-dialog-2": _CROSS,
    # Stop the blinking cursor and set the focus without delay.
    "terminal": "clearInterval(flicker); $('#input-flicker').hide(); $('#terminal-target').focus()",
}
"""JavaScript to run on a page after its task is generated."""
