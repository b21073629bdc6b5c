"""Oracle steps in the forum: navigation, forms, and reading its pages."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from agentgym_envs.webarena.browser.view import Element
from agentgym_envs.webarena.tasks.page_reader import Name, PageReader, Steps, texts_of
from agentgym_envs.webarena.tasks.steps import given

SEARCH = "Search the forum"
_SCORE = re.compile(r"-?\d+")
_COMMENTS = re.compile(r"(\d+) comments?")
_DATED = re.compile(r"(?:.* )?on (\w{3} \d+, \d{4}).*")
_COMMENT_LINE = re.compile(r"on (\w{3} \d+, \d{4}), (-?\d+) points?, on")
MESSAGES = re.compile(r"Messages( \(\d+\))?")
_UPVOTE = re.compile("Upvote|Retract upvote")
_DISCLOSURE = "DisclosureTriangle"
_ANY = re.compile(r".+", re.DOTALL)


class ListedPost(NamedTuple):
    """A post of a list; `day` has the form of the pages ("Mar 13, 2026")."""

    title: str
    author: str
    day: str
    score: int
    comments: int


class ShownComment(NamedTuple):
    """A comment on a page."""

    author: str
    text: str
    score: int


def search(page: PageReader, words: str) -> Iterator[str]:
    """Search the posts."""
    yield page.type(SEARCH, words, enter=True)


def search_in(page: PageReader, words: str, kind: str) -> Iterator[str]:
    """Search "Users", "Comments" or "Boards"."""
    yield from search(page, words)
    yield page.choose("Search in", kind)
    yield page.click("button", "Go")


def open_post(page: PageReader, title: str) -> Iterator[str]:
    """Search for a post and open it, from any page of the results."""
    yield from search(page, title)
    while not page.has("link", title) and page.has("link", "Next"):
        yield page.click("link", "Next")
    yield page.click("link", title)


def open_user(page: PageReader, name: str) -> Iterator[str]:
    """Search for a user and open the profile."""
    yield from search_in(page, name, "Users")
    yield page.click("link", name)


def open_board(page: PageReader, name: str, tab: str = "") -> Iterator[str]:
    """Open a board from the list of all boards, and one of its tabs."""
    yield page.click("link", "Boards")
    yield page.click("link", name)
    if tab:
        yield open_tab(page, tab)


def open_tab(page: PageReader, tab: str) -> str:
    """Return the command that opens a tab of the board on the page, such as "New"."""
    return page.click("link", tab, after="Sort posts")


def open_account_menu(page: PageReader, entry: str) -> Iterator[str]:
    """Open the account's menu and choose an entry."""
    yield from page.expand(_ANY, after=MESSAGES)
    yield page.click("link", entry)


def expand_in(page: PageReader, line: str, name: str) -> Iterator[str]:
    """Expand a part of the post or comment that contains a text."""
    part = next(one for one in page.line(line) if one.role == _DISCLOSURE and one.name == name)
    if part.properties.get("expanded") != "True":
        yield page.click_in(line, _DISCLOSURE, name)


def expand_more(page: PageReader, nth: int) -> Iterator[str]:
    """Expand the `nth` menu "More" of a page."""
    if page.find(_DISCLOSURE, "More", nth=nth).properties.get("expanded") != "True":
        yield page.click(_DISCLOSURE, "More", nth=nth)


def choose_from_more(page: PageReader, line: str, role: str, entry: Name) -> Iterator[str]:
    """Choose an entry of the menu "More" of the post or comment that contains a text."""
    yield from expand_in(page, line, "More")
    yield page.click_in(line, role, entry)


def confirm(page: PageReader) -> str:
    """Return the command that confirms the page's question."""
    return page.click("button", "OK")


def listed(page: PageReader) -> list[ListedPost]:
    """Return the posts of the list on the page."""
    return [_post(line) for line in page.lines("article")]


def _post(line: Sequence[Element]) -> ListedPost:
    texts = texts_of(line)
    index = next(index for index, text in enumerate(texts) if _DATED.fullmatch(text) or text == "in")
    days = [found[1] for found in map(_DATED.fullmatch, texts) if found]
    comments = [int(found[1]) for found in map(_COMMENTS.fullmatch, texts) if found]
    return ListedPost(heading(line), texts[index - 1], days[-1], _score(line), comments[-1])


def nth_title(index: int) -> Any:
    """Return an argument of a step: the title of a post of the list on the page."""
    return given(lambda page: listed(page)[index].title)


def heading(line: Sequence[Element]) -> str:
    """Return the first heading of a line."""
    return next(element.name for element in line if element.role == "heading")


def _score(line: Sequence[Element]) -> int:
    """Return the number after the first vote button."""
    texts = texts_of(line)
    index = next(index for index, text in enumerate(texts) if _UPVOTE.fullmatch(text))
    return int(next(text for text in texts[index:] if _SCORE.fullmatch(text)))


def score(page: PageReader) -> int:
    """Return the score of the post on the page."""
    return _score(page.elements)


def comments(page: PageReader) -> list[ShownComment]:
    """Return the comments on a post's page, in page order."""
    lines = [line for line in page.lines("article")[1:] if any(_UPVOTE.fullmatch(text) for text in texts_of(line))]
    return [_comment(line) for line in lines]


def all_comments(page: PageReader) -> Steps[list[ShownComment]]:
    """Read the comments on this page of a thread and on all later ones."""
    found = comments(page)
    while page.has("link", "Next"):
        yield page.click("link", "Next")
        found += comments(page)
    return found


def _comment(line: Sequence[Element]) -> ShownComment:
    texts = texts_of(line)
    start = next(index for index, text in enumerate(texts) if _DATED.fullmatch(text))
    end = next(index for index, text in enumerate(texts) if _UPVOTE.fullmatch(text))
    return ShownComment(texts[0], " ".join(texts[start + 1 : end]), _score(line))


def listed_comments(page: PageReader) -> list[ShownComment]:
    """Return the comments of a list of comments, such as a user's."""
    return [_brief(texts_of(line)) for line in page.lines("article")]


def _brief(texts: Sequence[str]) -> ShownComment:
    index, found = next((index, found) for index, found in enumerate(map(_COMMENT_LINE.fullmatch, texts)) if found)
    return ShownComment(texts[0], " ".join(texts[index + 4 : -1]), int(found[2]))


def author(page: PageReader) -> str:
    """Return the author of the post on the page."""
    links = [element.name for element in page.lines("article")[0] if element.role == "link"]
    return links[0]


def all_user_comments(page: PageReader) -> Steps[list[ShownComment]]:
    """Read all comments of the user whose profile is open."""
    yield page.click("link", "Comments")
    found = listed_comments(page)
    while page.has("link", "Next"):
        yield page.click("link", "Next")
        found += listed_comments(page)
    return found


def find_own_post(page: PageReader, title: str) -> Steps[ListedPost]:
    """Find a post in the account's profile, on any of its pages."""
    yield from open_account_menu(page, "My profile")
    yield from page.turn_to("link", title)
    return next(post for post in listed(page) if post.title == title)


def find_comment(page: PageReader, user: str) -> Iterator[str]:
    """Open the page of the thread with a comment by this user."""
    while all(one.author != user for one in comments(page)):
        yield page.click("link", "Next")


def add_comment(page: PageReader, text: str) -> Iterator[str]:
    """Comment on the post on the page."""
    yield page.type("Your comment", text)
    yield page.click("button", "Comment")


def add_comment_if_open(page: PageReader, text: str) -> Iterator[str]:
    """Comment on the post on the page, unless it is locked."""
    if page.has("textbox", "Your comment"):
        yield from add_comment(page, text)


def submit_post(page: PageReader, title: str, text: str, *, flair: str = "") -> Iterator[str]:
    """Submit a post to the board on the page."""
    yield page.click("link", "Submit")
    yield page.type("Title", title)
    yield page.type("Text", text)
    if flair:
        yield page.choose("Flair", flair)
    yield page.click("button", "Post")


def send_message(page: PageReader, user: str, subject: str, text: str) -> Iterator[str]:
    """Start a private conversation."""
    yield page.click("link", MESSAGES)
    yield page.click("link", "New message")
    yield page.type("To", user)
    yield page.type("Subject", subject)
    yield page.type("Message", text)
    yield page.click("button", "Send")


def act_on_own_comment(page: PageReader, role: str, entry: str) -> Iterator[str]:
    """Find the account's only comment in a thread, and choose an entry of its menu."""
    me = page.find(_DISCLOSURE, _ANY, after=MESSAGES).name
    yield from find_comment(page, me)
    index = [one.author for one in comments(page)].index(me)
    yield from expand_more(page, index)
    yield page.click(role, entry)


def open_conversation(page: PageReader, user: str) -> Iterator[str]:
    """Open the conversation with a user."""
    yield page.click("link", MESSAGES)
    subject = [element.name for element in page.line(user) if element.role == "link"][1]
    yield page.click_in(user, "link", subject)
