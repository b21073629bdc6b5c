"""What the oracles of the forum's tasks have in common: ways through it, and how its pages are read."""

from __future__ import annotations

import re
from collections.abc import Generator, Iterator, Sequence
from typing import NamedTuple, TypeAlias, TypeVar

from agentgym_envs.webarena.browser.view import Element
from agentgym_envs.webarena.tasks.page_reader import Name, PageReader, texts_of

_T = TypeVar("_T")
Steps: TypeAlias = Generator[str, None, _T]
"""Commands, and what was learned by them."""
SEARCH = "Search the forum"
_SCORE = re.compile(r"-?\d+")
_COMMENTS = re.compile(r"(\d+) comments?")
_ON = re.compile(r"(?:.* )?on (\w{3} \d+, \d{4}).*")
_BRIEF = re.compile(r"on (\w{3} \d+, \d{4}), (-?\d+) points?, on")
MESSAGES = re.compile(r"Messages( \(\d+\))?")
_UPVOTE = re.compile("Upvote|Retract upvote")
_PART = "DisclosureTriangle"
_ANY = re.compile(r".+", re.DOTALL)


class Post(NamedTuple):
    """A post as a list tells it; `day` as pages have it ("Mar 13, 2026")."""

    title: str
    author: str
    day: str
    score: int
    comments: int


class Comment(NamedTuple):
    """A comment as a page tells it."""

    author: str
    text: str
    score: int


def search(sight: PageReader, words: str) -> Iterator[str]:
    """Search the posts."""
    yield sight.type(SEARCH, words, enter=True)


def search_in(sight: PageReader, words: str, kind: str) -> Iterator[str]:
    """Search "Users", "Comments" or "Boards"."""
    yield from search(sight, words)
    yield sight.choose("Search in", kind)
    yield sight.click("button", "Go")


def open_post(sight: PageReader, title: str) -> Iterator[str]:
    """Search for a post and open it, on whichever page of what is found it is."""
    yield from search(sight, title)
    while not sight.has("link", title) and sight.has("link", "Next"):
        yield sight.click("link", "Next")
    yield sight.click("link", title)


def open_user(sight: PageReader, name: str) -> Iterator[str]:
    """Search for a user and open the profile."""
    yield from search_in(sight, name, "Users")
    yield sight.click("link", name)


def open_board(sight: PageReader, name: str, tab: str = "") -> Iterator[str]:
    """Choose a board from the list of all, and one of its tabs."""
    yield sight.click("link", "Boards")
    yield sight.click("link", name)
    if tab:
        yield sight.click("link", tab, after="Sort posts")


def own_menu(sight: PageReader, entry: str) -> Iterator[str]:
    """Open the menu of one's account and choose an entry."""
    yield from sight.unfold(_ANY, after=MESSAGES)
    yield sight.click("link", entry)


def unfold_in(sight: PageReader, line: str, name: str) -> Iterator[str]:
    """Open a part of the post or comment that a text is in, if it is shut."""
    part = next(one for one in sight.line(line) if one.role == _PART and one.name == name)
    if part.properties.get("expanded") != "True":
        yield sight.click_in(line, _PART, name)


def unfold_more(sight: PageReader, nth: int) -> Iterator[str]:
    """Open the `nth` menu "More" of a page, if it is shut."""
    if sight.find(_PART, "More", nth=nth).properties.get("expanded") != "True":
        yield sight.click(_PART, "More", nth=nth)


def more(sight: PageReader, line: str, role: str, entry: Name) -> Iterator[str]:
    """Open the menu "More" of the post or comment that a text is in, and choose an entry."""
    yield from unfold_in(sight, line, "More")
    yield sight.click_in(line, role, entry)


def confirm(sight: PageReader) -> str:
    """Say yes to what the page asks."""
    return sight.click("button", "OK")


def listed(sight: PageReader) -> list[Post]:
    """The posts of the list on the page."""
    return [_post(line) for line in sight.lines("article")]


def _post(line: Sequence[Element]) -> Post:
    texts = texts_of(line)
    place = next(place for place, text in enumerate(texts) if _ON.fullmatch(text) or text == "in")
    days = [found[1] for found in map(_ON.fullmatch, texts) if found]
    comments = [int(found[1]) for found in map(_COMMENTS.fullmatch, texts) if found]
    return Post(heading(line), texts[place - 1], days[-1], _score(line), comments[-1])


def heading(line: Sequence[Element]) -> str:
    """The first heading in a line."""
    return next(element.name for element in line if element.role == "heading")


def _score(line: Sequence[Element]) -> int:
    """The number behind the first button for votes."""
    texts = texts_of(line)
    place = next(place for place, text in enumerate(texts) if _UPVOTE.fullmatch(text))
    return int(next(text for text in texts[place:] if _SCORE.fullmatch(text)))


def score(sight: PageReader) -> int:
    """The score of the post whose page this is."""
    return _score(sight.elements)


def comments(sight: PageReader) -> list[Comment]:
    """The comments on the page of a post, in its order."""
    lines = [line for line in sight.lines("article")[1:] if any(_UPVOTE.fullmatch(text) for text in texts_of(line))]
    return [_comment(line) for line in lines]


def all_comments(sight: PageReader) -> Steps[list[Comment]]:
    """Those of all pages of a thread, from this one on."""
    found = comments(sight)
    while sight.has("link", "Next"):
        yield sight.click("link", "Next")
        found += comments(sight)
    return found


def _comment(line: Sequence[Element]) -> Comment:
    texts = texts_of(line)
    start = next(place for place, text in enumerate(texts) if _ON.fullmatch(text))
    end = next(place for place, text in enumerate(texts) if _UPVOTE.fullmatch(text))
    return Comment(texts[0], " ".join(texts[start + 1 : end]), _score(line))


def written(sight: PageReader) -> list[Comment]:
    """The comments in a list of them, such as somebody's; each says where it was made."""
    return [_brief(texts_of(line)) for line in sight.lines("article")]


def _brief(texts: Sequence[str]) -> Comment:
    place, found = next((place, found) for place, found in enumerate(map(_BRIEF.fullmatch, texts)) if found)
    return Comment(texts[0], " ".join(texts[place + 4 : -1]), int(found[2]))


def author(sight: PageReader) -> str:
    """Who wrote the post whose page this is."""
    links = [element.name for element in sight.lines("article")[0] if element.role == "link"]
    return links[0]


def comments_of(sight: PageReader) -> Steps[list[Comment]]:
    """All comments of the user whose profile this is."""
    yield sight.click("link", "Comments")
    found = written(sight)
    while sight.has("link", "Next"):
        yield sight.click("link", "Next")
        found += written(sight)
    return found


def own_post(sight: PageReader, title: str) -> Steps[Post]:
    """Find a post in one's own profile, on whichever page it is."""
    yield from own_menu(sight, "My profile")
    while not sight.has("link", title):
        yield sight.click("link", "Next")
    return next(post for post in listed(sight) if post.title == title)


def to_comment(sight: PageReader, user: str) -> Iterator[str]:
    """Turn the pages of a thread until there is a comment by somebody."""
    while all(said.author != user for said in comments(sight)):
        yield sight.click("link", "Next")


def comment(sight: PageReader, text: str) -> Iterator[str]:
    """Comment on the post whose page this is."""
    yield sight.type("Your comment", text)
    yield sight.click("button", "Comment")


def submit(sight: PageReader, title: str, text: str, *, flair: str = "") -> Iterator[str]:
    """Post in the board whose page this is."""
    yield sight.click("link", "Submit")
    yield sight.type("Title", title)
    yield sight.type("Text", text)
    if flair:
        yield sight.choose("Flair", flair)
    yield sight.click("button", "Post")


def write_message(sight: PageReader, subject: str, text: str) -> Iterator[str]:
    """Fill in the form of a message and send it."""
    yield sight.type("Subject", subject)
    yield sight.type("Message", text)
    yield sight.click("button", "Send")


def own_comment(sight: PageReader, role: str, entry: str) -> Iterator[str]:
    """Open the menu of the account's only comment in a thread and choose an entry; turns pages to find it."""
    me = sight.find(_PART, _ANY, after=MESSAGES).name
    yield from to_comment(sight, me)
    place = [said.author for said in comments(sight)].index(me)
    yield from unfold_more(sight, place)
    yield sight.click(role, entry)
