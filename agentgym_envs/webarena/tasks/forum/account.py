"""Tasks about the posts, comments and settings of the agent's account."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from random import Random

from agentgym_envs.webarena.evaluators.dom import PageHolds
from agentgym_envs.webarena.evaluators.state import Updated
from agentgym_envs.webarena.sites.forum.views_settings import FRONTS, SORTS
from agentgym_envs.webarena.sites.forum.wordlists import COLOURS
from agentgym_envs.webarena.sites.world import World
from agentgym_envs.webarena.tasks.forum import queries, steps
from agentgym_envs.webarena.tasks.forum.queries import EDITED, ME, PHRASES, TITLES, ForumTemplate, rows
from agentgym_envs.webarena.tasks.page_reader import PageReader
from agentgym_envs.webarena.tasks.steps import choose_option, click, do, given, type_text
from agentgym_envs.webarena.tasks.template import Params

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


def _edit(page: PageReader, title: str) -> Iterator[str]:
    """Open the edit form of the agent's post."""
    yield from steps.find_own_post(page, title)
    yield page.click("link", title)
    yield page.click("link", "Edit")


edit_post = ForumTemplate(
    "forum-edit-post",
    "change",
    "medium",
    intents=(
        'Replace the text of my post "{title}" with "{text}"',
        'Edit my post "{title}" so that its text is only: "{text}"',
        'My post "{title}" should say "{text}" instead of what it says now. Keep the title.',
    ),
    instances=rows("SELECT title FROM posts WHERE author = 1", text=PHRASES),
    expected=lambda world, title, text: queries.post_updated(world, title, body=text, **EDITED),
    solution=[do(_edit, "{title}"), type_text("Text", "{text}"), click("button", "Save changes")],
)

retitle_post = ForumTemplate(
    "forum-retitle",
    "change",
    "medium",
    intents=(
        'Change the title of my post "{title}" to "{new}".',
        'My post "{title}" should be called "{new}" from now on.',
        'Give my post "{title}" the new title "{new}" and leave the text as it is.',
    ),
    instances=rows("SELECT title FROM posts WHERE author = 1", new=TITLES),
    expected=lambda world, title, new: [
        queries.post_updated(world, title, title=new, **EDITED),
        PageHolds(queries.post_url(world, title), includes=(new,)),
    ],
    solution=[do(_edit, "{title}"), type_text("Title", "{new}"), click("button", "Save changes")],
)

delete_post = ForumTemplate(
    "forum-delete-post",
    "change",
    "medium",
    intents=(
        'Delete my post "{title}".',
        'I regret my post "{title}". Please delete it.',
        'Take my post "{title}" off the forum for good.',
    ),
    instances=rows("SELECT title FROM posts WHERE author = 1"),
    expected=lambda world, title: queries.post_updated(world, title, deleted=1),
    solution=[
        do(steps.find_own_post, "{title}"),
        click("link", "{title}"),
        click("button", "Delete"),
        do(steps.confirm),
    ],
    mistake=[do(steps.find_own_post, "{title}"), click("link", "{title}"), click("button", "Hide")],
)

edit_comment = ForumTemplate(
    "forum-edit-comment",
    "change",
    "medium",
    intents=(
        'Change my comment on the post "{title}" to "{text}"',
        'I commented on "{title}". Edit that comment; it should read "{text}"',
        'Replace what my comment under "{title}" says with "{text}"',
    ),
    instances=rows("SELECT title FROM lone WHERE author = 1", text=PHRASES),
    expected=lambda world, title, text: Updated(
        "forum_comments", {"id": _comment(world, title)}, {"body": text, **EDITED}
    ),
    solution=[
        do(steps.open_post, "{title}"),
        do(steps.act_on_own_comment, "link", "Edit"),
        type_text("Comment", "{text}"),
        click("button", "Save changes"),
    ],
    mistake=[do(steps.open_post, "{title}"), do(steps.add_comment_if_open, "{text}")],
)


def _comment(world: World, title: str) -> int:
    """Return the account's only comment on a post."""
    query = "SELECT c.id FROM forum_comments c JOIN forum_posts p ON p.id = c.post WHERE p.title = ? AND c.author = 1"
    return int(world.value(query, title))


delete_comment = ForumTemplate(
    "forum-delete-comment",
    "change",
    "medium",
    intents=(
        'Delete my comment on the post "{title}".',
        'I no longer stand by my comment under "{title}". Delete it.',
        'Remove the comment that I wrote on "{title}".',
    ),
    instances=rows("SELECT title FROM lone WHERE author = 1"),
    expected=lambda world, title: Updated("forum_comments", {"id": _comment(world, title)}, {"deleted": 1}),
    solution=[do(steps.open_post, "{title}"), do(steps.act_on_own_comment, "button", "Delete"), do(steps.confirm)],
)


def _profiles(world: World, rng: Random) -> list[Params]:
    """Return biographies with colours that differ from the current one."""
    colours = [colour for colour in COLOURS if colour != world.value("SELECT avatar FROM forum_users WHERE id = 1")]
    return [{"bio": bio, "colour": colour} for bio in _BIOS for colour in rng.sample(colours, 3)]


edit_forum_profile = ForumTemplate(
    "forum-profile",
    "change",
    "medium",
    intents=(
        'Set my biography in the forum to "{bio}" and the colour of my avatar to {colour}.',
        'On my forum profile, the biography should read "{bio}". Choose {colour} for the avatar, too.',
        'Change two things about my profile: the avatar becomes {colour}, and the biography becomes "{bio}".',
    ),
    instances=_profiles,
    expected=lambda bio, colour: Updated("forum_users", {"id": ME}, {"bio": bio, "avatar": colour}),
    solution=[
        do(steps.open_account_menu, "Settings"),
        type_text("Biography", "{bio}"),
        choose_option("Colour of your avatar", given(lambda colour: colour.capitalize())),
        click("button", "Save profile"),
    ],
    mistake=[do(steps.open_account_menu, "Settings"), type_text("Biography", "{bio}"), click("button", "Save profile")],
)

_MORE = ("", ", and do not notify me of replies any more")


def _preferences(world: World) -> list[Params]:
    """Return choices that differ from the current ones."""
    now = world.rows("SELECT front, sort FROM forum_users WHERE id = 1")[0]
    return [
        {"front": front, "sort": sort, "more": more}
        for key, front in FRONTS
        for other, sort in SORTS
        for more in _MORE
        if key != now["front"] and other != now["sort"]
    ]


def _key(pairs: Sequence[tuple[str, str]], words: str) -> str:
    return next(key for key, one in pairs if one == words)


def _mute_replies(page: PageReader, more: str) -> Iterator[str]:
    if more:
        yield page.click("checkbox", "Notify me of replies")


set_preferences = ForumTemplate(
    "forum-preferences",
    "change",
    "medium",
    intents=(
        'In my preferences, let the front page show "{front}", sorted by "{sort}"{more}.',
        'Set up my forum account so that the front page shows "{front}" and is sorted by "{sort}"{more}.',
        'I want "{front}" on my front page, in the order "{sort}"{more}. Save that as my preference.',
    ),
    instances=_preferences,
    expected=lambda front, sort, more: Updated(
        "forum_users",
        {"id": ME},
        {"front": _key(FRONTS, front), "sort": _key(SORTS, sort), "notify_replies": int(not more)},
    ),
    solution=[
        do(steps.open_account_menu, "Settings"),
        click("link", "Preferences"),
        choose_option("Front page shows", "{front}"),
        choose_option("Sort the front page by", "{sort}"),
        do(_mute_replies, "{more}"),
        click("button", "Save preferences"),
    ],
)
