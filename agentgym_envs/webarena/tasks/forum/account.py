"""Tasks about the posts, comments and settings of the agent's account."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from random import Random

from agentgym_envs.webarena.evaluators.base import Evaluator
from agentgym_envs.webarena.evaluators.dom import PageHolds
from agentgym_envs.webarena.evaluators.state import Updated
from agentgym_envs.webarena.sites.forum.views_settings import FRONTS, SORTS
from agentgym_envs.webarena.sites.forum.wordlists import COLOURS
from agentgym_envs.webarena.sites.world import World
from agentgym_envs.webarena.tasks.forum import queries, steps
from agentgym_envs.webarena.tasks.forum.queries import ME, ORIGIN, PHRASES, TITLES, ForumTemplate, select
from agentgym_envs.webarena.tasks.page_reader import PageReader
from agentgym_envs.webarena.tasks.template import Params, changed

_BIOS = (
    "Gone fishing until May.",
    "I answer on Sundays only.",
    "Collector of maps and excuses.",
    "New in town and curious.",
    "Ask me about sourdough.",
    "Slow reader, fast walker.",
    "Mostly harmless, sometimes helpful.",
    "I write in the evening and regret it in the morning.",
)
_EDIT_TIME = {"edited": queries.ANYTIME}


class EditPost(ForumTemplate):
    """Change the text of the agent's post."""

    name, kind, difficulty = "forum-edit-post", "change", "medium"
    intents = (
        'Replace the text of my post "{title}" with "{text}"',
        'Edit my post "{title}" so that its text is only: "{text}"',
        'My post "{title}" should say "{text}" instead of what it says now. Keep the title.',
    )

    def instances(self, world: World, rng: Random) -> Iterable[Params]:
        return queries.with_choices(select(world, "SELECT title FROM posts WHERE author = 1"), rng, text=PHRASES)

    def evaluators(self, world: World, params: Params) -> Sequence[Evaluator]:
        number = queries.post(world, params["title"])["id"]
        return [changed(Updated("forum_posts", {"id": number}, {"body": params["text"], **_EDIT_TIME}))]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        yield from _edit(page, params["title"])
        yield page.type("Text", params["text"])
        yield page.click("button", "Save changes")
        yield page.stop()


def _edit(page: PageReader, title: str) -> Iterator[str]:
    """Open the edit form of the agent's post."""
    yield from steps.find_own_post(page, title)
    yield page.click("link", title)
    yield page.click("link", "Edit")


class RetitlePost(ForumTemplate):
    """Change the title of the agent's post."""

    name, kind, difficulty = "forum-retitle", "change", "medium"
    intents = (
        'Change the title of my post "{title}" to "{new}".',
        'My post "{title}" should be called "{new}" from now on.',
        'Give my post "{title}" the new title "{new}" and leave the text as it is.',
    )

    def instances(self, world: World, rng: Random) -> Iterable[Params]:
        return queries.with_choices(select(world, "SELECT title FROM posts WHERE author = 1"), rng, new=TITLES)

    def evaluators(self, world: World, params: Params) -> Sequence[Evaluator]:
        found = queries.post(world, params["title"])
        page = PageHolds(f"{ORIGIN}/b/{found['board_name']}/{found['id']}", includes=(params["new"],))
        return [changed(Updated("forum_posts", {"id": found["id"]}, {"title": params["new"], **_EDIT_TIME})), page]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        yield from _edit(page, params["title"])
        yield page.type("Title", params["new"])
        yield page.click("button", "Save changes")
        yield page.stop()


class DeletePost(ForumTemplate):
    """Delete the agent's post."""

    name, kind, difficulty = "forum-delete-post", "change", "medium"
    intents = (
        'Delete my post "{title}".',
        'I regret my post "{title}". Please delete it.',
        'Take my post "{title}" off the forum for good.',
    )

    def instances(self, world: World, rng: Random) -> Iterable[Params]:
        return select(world, "SELECT title FROM posts WHERE author = 1")

    def evaluators(self, world: World, params: Params) -> Sequence[Evaluator]:
        return [changed(Updated("forum_posts", {"id": queries.post(world, params["title"])["id"]}, {"deleted": 1}))]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        yield from steps.find_own_post(page, params["title"])
        yield page.click("link", params["title"])
        yield page.click("button", "Delete")
        yield steps.confirm(page)
        yield page.stop()

    def wrong(self, page: PageReader, params: Params) -> Iterator[str]:
        """Hide the post instead."""
        yield from steps.find_own_post(page, params["title"])
        yield page.click("link", params["title"])
        yield page.click("button", "Hide")
        yield page.stop()


class EditComment(ForumTemplate):
    """Change the text of the agent's comment."""

    name, kind, difficulty = "forum-edit-comment", "change", "medium"
    intents = (
        'Change my comment on the post "{title}" to "{text}"',
        'I commented on "{title}". Edit that comment; it should read "{text}"',
        'Replace what my comment under "{title}" says with "{text}"',
    )

    def instances(self, world: World, rng: Random) -> Iterable[Params]:
        """Posts with a single comment by the account."""
        return queries.with_choices(select(world, "SELECT title FROM lone WHERE author = 1"), rng, text=PHRASES)

    def evaluators(self, world: World, params: Params) -> Sequence[Evaluator]:
        number = _comment(world, params["title"])
        return [changed(Updated("forum_comments", {"id": number}, {"body": params["text"], **_EDIT_TIME}))]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        yield from steps.open_post(page, params["title"])
        yield from steps.act_on_own_comment(page, "link", "Edit")
        yield page.type("Comment", params["text"])
        yield page.click("button", "Save changes")
        yield page.stop()

    def wrong(self, page: PageReader, params: Params) -> Iterator[str]:
        """Add a second comment instead."""
        yield from steps.open_post(page, params["title"])
        if page.has("textbox", "Your comment"):
            yield from steps.add_comment(page, params["text"])
        yield page.stop()


def _comment(world: World, title: str) -> int:
    """Return the account's only comment on a post."""
    query = "SELECT c.id FROM forum_comments c JOIN forum_posts p ON p.id = c.post WHERE p.title = ? AND c.author = 1"
    return int(world.value(query, title))


class DeleteComment(ForumTemplate):
    """Delete the agent's comment."""

    name, kind, difficulty = "forum-delete-comment", "change", "medium"
    intents = (
        'Delete my comment on the post "{title}".',
        'I no longer stand by my comment under "{title}". Delete it.',
        'Remove the comment that I wrote on "{title}".',
    )

    def instances(self, world: World, rng: Random) -> Iterable[Params]:
        """Posts with a single comment by the account."""
        return select(world, "SELECT title FROM lone WHERE author = 1")

    def evaluators(self, world: World, params: Params) -> Sequence[Evaluator]:
        return [changed(Updated("forum_comments", {"id": _comment(world, params["title"])}, {"deleted": 1}))]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        yield from steps.open_post(page, params["title"])
        yield from steps.act_on_own_comment(page, "button", "Delete")
        yield steps.confirm(page)
        yield page.stop()


class EditForumProfile(ForumTemplate):
    """Change the biography and the avatar's colour."""

    name, kind, difficulty = "forum-profile", "change", "medium"
    intents = (
        'Set my biography in the forum to "{bio}" and the colour of my avatar to {colour}.',
        'On my forum profile, the biography should read "{bio}". Choose {colour} for the avatar, too.',
        'Change two things about my profile: the avatar becomes {colour}, and the biography becomes "{bio}".',
    )

    def instances(self, world: World, rng: Random) -> Iterable[Params]:
        """Colours that differ from the current one."""
        colours = [colour for colour in COLOURS if colour != world.value("SELECT avatar FROM forum_users WHERE id = 1")]
        return [{"bio": bio, "colour": colour} for bio in _BIOS for colour in rng.sample(colours, 3)]

    def evaluators(self, world: World, params: Params) -> Sequence[Evaluator]:
        return [changed(Updated("forum_users", {"id": ME}, {"bio": params["bio"], "avatar": params["colour"]}))]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        yield from steps.open_account_menu(page, "Settings")
        yield page.type("Biography", params["bio"])
        yield page.choose("Colour of your avatar", params["colour"].capitalize())
        yield page.click("button", "Save profile")
        yield page.stop()

    def wrong(self, page: PageReader, params: Params) -> Iterator[str]:
        """Change only the biography."""
        yield from steps.open_account_menu(page, "Settings")
        yield page.type("Biography", params["bio"])
        yield page.click("button", "Save profile")
        yield page.stop()


class SetPreferences(ForumTemplate):
    """Change the contents of the front page."""

    name, kind, difficulty = "forum-preferences", "change", "medium"
    intents = (
        'In my preferences, let the front page show "{front}", sorted by "{sort}"{more}.',
        'Set up my forum account so that the front page shows "{front}" and is sorted by "{sort}"{more}.',
        'I want "{front}" on my front page, in the order "{sort}"{more}. Save that as my preference.',
    )
    _more = ("", ", and do not notify me of replies any more")

    def instances(self, world: World, rng: Random) -> Iterable[Params]:
        """Choices that differ from the current ones."""
        now = world.rows("SELECT front, sort FROM forum_users WHERE id = 1")[0]
        return [
            {"front": front, "sort": sort, "more": more}
            for key, front in FRONTS
            for other, sort in SORTS
            for more in self._more
            if key != now["front"] and other != now["sort"]
        ]

    def evaluators(self, world: World, params: Params) -> Sequence[Evaluator]:
        fronts, sorts = ({words: key for key, words in pairs} for pairs in (FRONTS, SORTS))
        values = {
            "front": fronts[params["front"]],
            "sort": sorts[params["sort"]],
            "notify_replies": int(not params["more"]),
        }
        return [changed(Updated("forum_users", {"id": ME}, values))]

    def oracle(self, page: PageReader, params: Params) -> Iterator[str]:
        yield from steps.open_account_menu(page, "Settings")
        yield page.click("link", "Preferences")
        yield page.choose("Front page shows", params["front"])
        yield page.choose("Sort the front page by", params["sort"])
        if params["more"]:
            yield page.click("checkbox", "Notify me of replies")
        yield page.click("button", "Save preferences")
        yield page.stop()


TEMPLATES = (
    EditPost(),
    RetitlePost(),
    DeletePost(),
    EditComment(),
    DeleteComment(),
    EditForumProfile(),
    SetPreferences(),
)
