"""Tasks that create posts, comments, messages and boards."""

from __future__ import annotations

import re

from agentgym_envs.webarena.evaluators.dom import PageHolds
from agentgym_envs.webarena.evaluators.state import Added, Expected, Updated
from agentgym_envs.webarena.sites.forum.wordlists import REPORTS
from agentgym_envs.webarena.sites.world import World
from agentgym_envs.webarena.tasks.forum import queries, steps
from agentgym_envs.webarena.tasks.forum.queries import ME, NOTIFICATIONS, ORIGIN, PHRASES, TITLES, ForumTemplate, rows
from agentgym_envs.webarena.tasks.instances import choose
from agentgym_envs.webarena.tasks.steps import click, click_in, do, given, type_text

comment_on_post = ForumTemplate(
    "forum-comment-on",
    "change",
    "medium",
    intents=(
        'Comment on the post "{title}": "{text}"',
        'Leave the comment "{text}" under the post "{title}".',
        'In the thread "{title}", write this as a comment of its own: "{text}"',
    ),
    instances=rows("SELECT title FROM posts WHERE NOT locked AND NOT veiled", text=PHRASES),
    expected=lambda world, title, text: [
        queries.comment_added(world, title, text),
        PageHolds(f"{queries.post_url(world, title)}?sort=new", includes=(text,)),
    ],
    free=NOTIFICATIONS,
    solution=[do(steps.open_post, "{title}"), do(steps.add_comment, "{text}")],
)

reply_to_comment = ForumTemplate(
    "forum-reply-to",
    "change",
    "medium",
    intents=(
        'Reply to the comment by {user} on the post "{title}" with "{text}"',
        'In the thread "{title}", answer the comment of {user}: "{text}"',
        'Write "{text}" as a reply to what {user} has commented on "{title}".',
    ),
    instances=rows(
        "SELECT title, author_name AS user FROM lone WHERE NOT locked AND author <> 1 AND comments BETWEEN 2 AND 14",
        sample=60,
        text=PHRASES,
    ),
    expected=lambda world, title, user, text: queries.comment_added(
        world, title, text, queries.comment(world, title, user)["id"]
    ),
    free=NOTIFICATIONS,
    solution=[
        do(steps.open_post, "{title}"),
        do(steps.find_comment, "{user}"),
        do(steps.expand_in, "{user}", "Reply"),
        type_text("Your reply to {user}", "{text}"),
        click_in("{user}", "button", "Send reply"),
    ],
    mistake=[do(steps.open_post, "{title}"), do(steps.add_comment, "{text}")],
)


def _posted(
    world: World, board: str, title: str, text: str = "", url: str | None = None, flair: str | None = None
) -> Added:
    number = queries.board(world, board)
    values = {"board": number, "author": ME, "title": title, "body": text, "deleted": 0, "url": url}
    return Added("forum_posts", {**values, "flair": flair and queries.flair(world, number, flair)})


submit_text = ForumTemplate(
    "forum-submit-text",
    "change",
    "medium",
    intents=(
        'Post in the board {board} with the title "{title}" and the text "{text}"',
        'Start a thread in {board}. Title: "{title}". Text: "{text}"',
        'Submit a new post to {board}, called "{title}", that says: "{text}"',
    ),
    instances=choose(queries.each_board, times=2, title=TITLES, text=PHRASES),
    expected=lambda world, board, title, text: [
        _posted(world, board, title, text),
        PageHolds(f"{ORIGIN}/b/{board}/new", includes=(title,)),
    ],
    solution=[do(steps.open_board, "{board}"), do(steps.submit_post, "{title}", "{text}")],
)

_HOSTS = ("pagesandpaths.test", "eveningnotes.test", "thequietdesk.test")

submit_link = ForumTemplate(
    "forum-submit-link",
    "change",
    "medium",
    intents=(
        'Post a link to {url} in the board {board}. Its title is "{title}".',
        'Share {url} in {board} under the title "{title}".',
        'Submit a link post to the board {board}: title "{title}", URL {url}, no text.',
    ),
    instances=choose(
        queries.each_board,
        times=2,
        title=TITLES,
        url=[f"https://{host}/{year}/notes-{number}" for host in _HOSTS for year, number in ((2025, 7), (2026, 3))],
    ),
    expected=_posted,
    solution=[
        do(steps.open_board, "{board}"),
        click("link", "Submit"),
        type_text("Title", "{title}"),
        type_text("URL", "{url}"),
        click("button", "Post"),
    ],
    mistake=[do(steps.open_board, "{board}"), do(steps.submit_post, "{title}", "{url}")],
)

submit_flair = ForumTemplate(
    "forum-submit-flair",
    "change",
    "hard",
    held_out=True,
    intents=(
        'Post "{title}" in the board {board} with the text "{text}" and the flair "{flair}".',
        'Start a thread in {board} that carries the flair "{flair}". Title: "{title}". Text: "{text}"',
        'Submit to {board}: title "{title}", text "{text}". Choose the flair "{flair}" for it.',
    ),
    instances=rows(
        "SELECT b.name AS board, f.name AS flair FROM forum_flairs f JOIN forum_boards b ON b.id = f.board",
        title=TITLES,
        text=PHRASES,
    ),
    expected=_posted,
    solution=[do(steps.open_board, "{board}"), do(steps.submit_post, "{title}", "{text}", flair="{flair}")],
    mistake=do(steps.submit_post, "{title}", "{text}"),
)

_BOARDS = (
    ("beekeeping", "Beekeeping", "Hives, honey and stings."),
    ("sailing", "Sailing", "For everybody who waits for wind."),
    ("pottery", "Pottery", "Clay, kilns and cracked mugs."),
    ("chess", "Chess", "Openings, endgames and excuses."),
    ("birdwatching", "Birdwatching", "What flew past your window."),
    ("calligraphy", "Calligraphy", "Ink on paper, slowly."),
    ("swimming", "Swimming", "Pools, lakes and cold seas."),
    ("mushrooms", "Mushrooms", "Found, photographed and left alone."),
    ("sewing", "Sewing", "Seams, patterns and broken needles."),
    ("bread", "Bread", "Flour, water, salt, time."),
    ("origami", "Origami", "Fold it again."),
    ("climbing", "Climbing", "Rock, plastic and chalk."),
)


def _board_added(world: World, board: str, title: str, text: str) -> list[Expected]:
    row = {"name": board, "title": title, "description": text, "sidebar": ""}
    number = 1 + int(world.value("SELECT MAX(id) FROM forum_boards"))
    moderator = Added("forum_moderators", {"board": number, "user": ME})
    follower = Added("forum_subscriptions", {"board": number, "account": ME})
    return [Added("forum_boards", {"id": number, **row}), moderator, follower]


new_board = ForumTemplate(
    "forum-new-board",
    "change",
    "medium",
    intents=(
        'Open a new board named {board} with the title "{title}" and the description "{text}"',
        'Create a board in the forum: name {board}, title "{title}", description "{text}". Leave the sidebar empty.',
        'The forum needs a board for {board}. Open one of that name; its title is "{title}", its description "{text}"',
    ),
    instances=lambda: [dict(zip(("board", "title", "text"), row, strict=True)) for row in _BOARDS],
    expected=_board_added,
    solution=[
        click("link", "Open a board"),
        type_text("Name", "{board}"),
        type_text("Title", "{title}"),
        type_text("Description", "{text}"),
        click("button", "Open the board"),
    ],
)

send_message = ForumTemplate(
    "forum-send-message",
    "change",
    "medium",
    intents=(
        'Send {user} a private message with the subject "{subject}" that says "{text}"',
        'Write to the user {user}. Subject: "{subject}". Message: "{text}"',
        'Start a private conversation with {user} called "{subject}" and write: "{text}"',
    ),
    instances=choose(queries.each_other, subject=TITLES, text=PHRASES),
    expected=queries.message_added,
    solution=[do(steps.send_message, "{user}", "{subject}", "{text}")],
)


def _answered(world: World, user: str, text: str) -> list[Expected]:
    """Return the new message; the earlier messages count as read."""
    person = queries.user(world, user)["id"]
    number = world.value("SELECT id FROM forum_conversations WHERE ? IN (opener, partner)", person)
    query = "SELECT id FROM forum_messages WHERE conversation = ? AND author <> 1 AND unread = 1"
    read = [Updated("forum_messages", {"id": row[0]}, {"unread": 0}) for row in world.rows(query, number)]
    return [Added("forum_messages", {"conversation": number, "author": ME, "body": text}), *read]


answer_message = ForumTemplate(
    "forum-answer-message",
    "change",
    "medium",
    intents=(
        'Answer in my private conversation with {user}: "{text}"',
        'Write back to {user} in the conversation that we have. Say "{text}"',
        'Reply to the messages from {user} with "{text}"',
    ),
    instances=lambda world, rng: [
        {**row, "text": text} for row in queries.conversations(world) for text in rng.sample(PHRASES, 2)
    ],
    expected=_answered,
    solution=[do(steps.open_conversation, "{user}"), type_text("Your answer", "{text}"), click("button", "Send")],
)

report_post = ForumTemplate(
    "forum-report",
    "change",
    "medium",
    intents=(
        'Report the post "{title}" to its moderators. The reason: {reason}.',
        'The post "{title}" should be looked at by the moderators. Report it as "{reason}".',
        'Tell the moderators that the post "{title}" is a case of "{reason}".',
    ),
    instances=rows("SELECT title FROM posts WHERE author <> 1 AND pinned = 0", reason=REPORTS),
    expected=lambda world, title, reason: Added(
        "forum_reports",
        {"reporter": ME, "post": queries.post(world, title)["id"], "comment": None, "reason": reason, "resolved": 0},
    ),
    solution=[
        do(steps.open_post, "{title}"),
        click("link", "Report"),
        click("radio", "{reason}"),
        click("button", "Send report"),
    ],
    mistake=[
        do(steps.open_post, "{title}"),
        click("link", "Report"),
        click("radio", given(lambda reason: re.compile(rf"(?!{re.escape(reason)}).*"))),
        click("button", "Send report"),
    ],
)
