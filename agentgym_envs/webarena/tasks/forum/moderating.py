"""Tasks of a moderator; the agent's account moderates one board."""

from __future__ import annotations

from agentgym_envs.webarena.evaluators.dom import PageHolds
from agentgym_envs.webarena.evaluators.state import Added, Expected, Removed, Updated
from agentgym_envs.webarena.sites.world import World
from agentgym_envs.webarena.tasks.forum import queries, steps
from agentgym_envs.webarena.tasks.forum.queries import ME, ORIGIN, PHRASES, ForumTemplate, my_board, rows, select
from agentgym_envs.webarena.tasks.instances import choose
from agentgym_envs.webarena.tasks.steps import choose_option, click, click_in, do, given, type_text
from agentgym_envs.webarena.tasks.template import Params

_FLAGS = {"lock": "locked", "pin": "pinned", "remove": "removed"}
_REASONS = ("Selling shoes in every thread", "Insulting beginners", "Five accounts, one person", "Endings in titles")
_RULES = (
    ("Pictures need a caption", "Tell us what we are looking at."),
    ("One thread a day", "Give others the chance to be read."),
    ("No screenshots of text", "Screen readers cannot read them."),
    ("Say when it is solved", "So that others find the answer."),
    ("Use the search first", "Most questions have been asked."),
    ("No shouting", "Capitals are for the beginnings of sentences."),
    ("Name your sources", "A link is enough."),
    ("English only", "So that everybody can follow."),
    ("Prices with a date", "They do not stay as they are."),
    ("Keep it on topic", "There is a board for everything else."),
)

moderate_post = ForumTemplate(
    "forum-flag",
    "change",
    "easy",
    intents=(
        'As its moderator, {do} the post "{title}".',
        'Use my rights as a moderator: {do} the post "{title}".',
        'I moderate the board of the post "{title}". Please {do} it.',
    ),
    instances=rows(
        "SELECT title FROM posts WHERE author <> 1 AND board_name = ? AND locked = 0 AND pinned = 0",
        my_board,
        do=list(_FLAGS),
    ),
    expected=lambda world, title, do: queries.post_updated(world, title, **{_FLAGS[do]: 1}),
    solution=[do(steps.open_post, "{title}"), click("button", given(lambda do: do.capitalize()))],
    mistake=click("button", "Hide"),
)

set_flair = ForumTemplate(
    "forum-set-flair",
    "change",
    "medium",
    intents=(
        'Set the flair of the post "{title}" to "{flair}".',
        'As a moderator, give the post "{title}" the flair "{flair}".',
        'The post "{title}" has the wrong flair. It should be "{flair}".',
    ),
    instances=rows(
        """
            SELECT p.title, f.name AS flair FROM posts p JOIN forum_flairs f ON f.board = p.board
            WHERE p.board_name = ? AND f.id IS NOT p.flair
        """,
        my_board,
    ),
    expected=lambda world, title, flair: queries.post_updated(
        world, title, flair=queries.flair(world, queries.post(world, title)["board"], flair)
    ),
    solution=[do(steps.open_post, "{title}"), choose_option("Flair", "{flair}"), click("button", "Set flair")],
)


def _subscribers(world: World) -> list[Params]:
    """Return subscribers of the board who are not banned."""
    query = """
        SELECT u.name AS user FROM forum_users u JOIN forum_subscriptions s ON s.account = u.id AND s.board = ?1
        WHERE u.id NOT IN (SELECT user FROM forum_moderators WHERE board = ?1)
        AND u.id NOT IN (SELECT user FROM forum_bans WHERE board = ?1)
    """
    board = my_board(world)
    return [{**row, "board": board} for row in select(world, query, queries.board(world, board))]


ban_user = ForumTemplate(
    "forum-ban",
    "change",
    "medium",
    intents=(
        'Ban the user {user} from the board {board}. Reason: "{reason}".',
        'I am a moderator of {board}. Ban {user} there and give "{reason}" as the reason.',
        'The user {user} should no longer be able to write in {board}. The reason for the ban is "{reason}".',
    ),
    instances=choose(_subscribers, reason=_REASONS),
    expected=lambda world, board, user, reason: Added(
        "forum_bans", {"board": queries.board(world, board), "user": queries.user(world, user)["id"], "reason": reason}
    ),
    solution=[
        do(steps.open_board, "{board}"),
        click("link", "Bans"),
        type_text("User", "{user}"),
        type_text("Reason", "{reason}"),
        click("button", "Ban"),
    ],
)

lift_ban = ForumTemplate(
    "forum-lift-ban",
    "change",
    "medium",
    intents=(
        "Lift the ban of {user} in the board {board}.",
        "{user} may write in {board} again. Please lift the ban.",
        "As a moderator of {board}, end the ban of the user {user}.",
    ),
    instances=rows(
        "SELECT u.name AS user, b.name AS board FROM forum_bans x "
        "JOIN forum_users u ON u.id = x.user JOIN forum_boards b ON b.id = x.board"
    ),
    expected=lambda world, user: Removed("forum_bans", {"user": queries.user(world, user)["id"]}),
    solution=[do(steps.open_board, "{board}"), click("link", "Bans"), click_in("{user}", "button", "Lift ban")],
)

_REPORTED = """
SELECT u.name FROM forum_reports r
LEFT JOIN forum_posts p ON p.id = r.post LEFT JOIN forum_comments c ON c.id = r.comment
JOIN forum_users u ON u.id IN (p.author, c.author)
"""
_DISMISS, _REMOVE = "Dismiss the report", "Remove what was reported"


def _reports(world: World) -> list[Params]:
    """Return open reports of users who filed a single report and were not reported themselves."""
    query = "SELECT u.name FROM forum_reports r JOIN forum_users u ON u.id = r.reporter WHERE r.resolved = 0"
    names = [row[0] for row in world.rows(query)]
    reported = {row[0] for row in world.rows(_REPORTED)}
    single = [name for name in names if names.count(name) == 1 and name not in reported]
    board = my_board(world)
    return [{"board": board, "user": name, "do": do} for name in single for do in (_DISMISS, _REMOVE)]


def _settled(world: World, user: str, do: str) -> list[Expected]:
    query = "SELECT * FROM forum_reports WHERE reporter = ? AND resolved = 0"
    found = world.rows(query, queries.user(world, user)["id"])[0]
    changes: list[Expected] = [Updated("forum_reports", {"id": found["id"]}, {"resolved": 1})]
    if do == _REMOVE:
        table, number = ("forum_posts", found["post"]) if found["post"] else ("forum_comments", found["comment"])
        changes.append(Updated(table, {"id": number}, {"removed": 1}))
    return changes


settle_report = ForumTemplate(
    "forum-settle",
    "change",
    "medium",
    intents=(
        "In the board {board}, {user} has reported something. {do}.",
        "Look at the report that {user} made in {board}, where I am a moderator. {do}.",
        "There is an open report by {user} in {board}. {do}.",
    ),
    instances=_reports,
    expected=_settled,
    solution=[
        do(steps.open_board, "{board}"),
        click("link", "Reports"),
        click_in("{user}", "button", given(lambda do: do.split()[0])),
    ],
    mistake=click_in("{user}", "button", given(lambda do: "Remove" if do == _DISMISS else "Dismiss")),
)

add_rule = ForumTemplate(
    "forum-add-rule",
    "change",
    "medium",
    intents=(
        'Add the rule "{title}" with the text "{text}" to the board {board}.',
        'As a moderator of {board}, add a rule. Title: "{title}". Text: "{text}"',
        'The board {board} needs one more rule: "{title}", explained by "{text}"',
    ),
    instances=lambda world: [{"board": my_board(world), "title": title, "text": text} for title, text in _RULES],
    expected=lambda world, title, text, board: [
        Added("forum_rules", {"board": queries.board(world, board), "title": title, "text": text}),
        PageHolds(f"{ORIGIN}/b/{board}", includes=(title,)),
    ],
    solution=[
        do(steps.open_board, "{board}"),
        click("link", "Edit rules"),
        type_text("Title", "{title}"),
        type_text("Text", "{text}"),
        click("button", "Add rule"),
    ],
)

set_sidebar = ForumTemplate(
    "forum-set-sidebar",
    "change",
    "medium",
    intents=(
        'Replace the sidebar of the board {board} with "{text}"',
        'I moderate {board}. Its sidebar should say only: "{text}"',
        'Change the sidebar text of {board} to "{text}" and nothing else.',
    ),
    instances=lambda world: [{"board": my_board(world), "text": text} for text in PHRASES],
    expected=lambda world, board, text: Updated("forum_boards", {"id": queries.board(world, board)}, {"sidebar": text}),
    solution=[
        do(steps.open_board, "{board}"),
        click("link", "Edit board"),
        type_text("Sidebar", "{text}"),
        click("button", "Save board"),
    ],
)


def _not_moderators(world: World) -> list[Params]:
    board = my_board(world)
    staff = queries.moderators(world, board)
    return [{"user": name, "board": board} for name in queries.others(world) if name not in staff]


add_moderator = ForumTemplate(
    "forum-add-moderator",
    "change",
    "medium",
    held_out=True,
    intents=(
        "Make {user} a moderator of the board {board}.",
        "I need help with moderating {board}. Give {user} the rights of a moderator there.",
        "Add the user {user} to the moderators of {board}.",
    ),
    instances=_not_moderators,
    expected=lambda world, board, user: Added(
        "forum_moderators", {"board": queries.board(world, board), "user": queries.user(world, user)["id"]}
    ),
    solution=[
        do(steps.open_board, "{board}"),
        click("link", "Edit board"),
        type_text("User", "{user}"),
        click("button", "Add moderator"),
    ],
)

remove_comment = ForumTemplate(
    "forum-remove-comment",
    "change",
    "medium",
    intents=(
        'As a moderator, remove the comment by {user} on the post "{title}".',
        'The comment of {user} under "{title}" breaks the rules of my board. Remove it.',
        'Use my rights as a moderator to remove what {user} has commented on "{title}".',
    ),
    instances=rows(
        "SELECT title, author_name AS user FROM lone WHERE board_name = ? AND author <> ? AND comments < 15",
        my_board,
        ME,
    ),
    expected=lambda world, title, user: Updated(
        "forum_comments", {"id": queries.comment(world, title, user)["id"]}, {"removed": 1}
    ),
    solution=[
        do(steps.open_post, "{title}"),
        do(steps.find_comment, "{user}"),
        do(steps.choose_from_more, "{user}", "button", "Remove as moderator"),
    ],
    mistake=[do(steps.open_post, "{title}"), click("button", "Remove")],
)
