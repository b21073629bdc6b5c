"""Tasks with posts in the agent's own words, most of them in a board that the agent has to choose."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from random import Random

from agentgym_envs.webarena.evaluators.base import Evaluator
from agentgym_envs.webarena.evaluators.state import Added, QueryReturns
from agentgym_envs.webarena.sites.world import World
from agentgym_envs.webarena.tasks.forum import queries, steps
from agentgym_envs.webarena.tasks.forum.queries import ME, ForumTemplate
from agentgym_envs.webarena.tasks.instances import Instances, choose
from agentgym_envs.webarena.tasks.page_reader import PageReader
from agentgym_envs.webarena.tasks.steps import do, given
from agentgym_envs.webarena.tasks.template import ExpectedResult, Params

QUESTIONS = {
    "astronomy": ("How do I collimate a small reflector?", "Which planets can I see before dawn this month?"),
    "boardgames": ("How do you explain long rules to children?", "Which dice game works well for two players?"),
    "books": ("Which novel made you cry on the bus?", "Do you finish novels that bore you?"),
    "coding": ("How do you name your variables?", "Should I write the tests before the code?"),
    "cooking": ("How do I keep rice from sticking to the pot?", "Can I bake bread without an oven?"),
    "cycling": ("How often should I oil my chain?", "Which tyres are best for gravel and rain?"),
    "films": ("Which film should everybody see in a cinema?", "Do you watch films with subtitles?"),
    "gardening": ("When should I prune my roses?", "How do I keep slugs away from lettuce?"),
    "guitar": ("How do I play a clean F major barre chord?", "How often do you change your strings?"),
    "hiking": ("How heavy is your rucksack for a week in huts?", "Do you walk with poles downhill?"),
    "homerepair": ("How do I stop a radiator from knocking?", "Can I hang a shelf on plasterboard?"),
    "knitting": ("How do I pick up a dropped stitch?", "Which yarn does not scratch the neck?"),
    "pets": ("How do I get my cat into a carrier?", "Why does my dog bark at the letterbox?"),
    "photography": ("Which shutter speed freezes a running child?", "How do I photograph a waterfall in daylight?"),
    "railways": ("Which night train has the best sleeping cars?", "Where do I sit to see the locomotive in curves?"),
}
"""Questions that only one board is about."""
THINGS = {
    "astronomy": ("a telescope for beginners", "binoculars for the moon"),
    "boardgames": ("a cooperative game for four", "a quick card game"),
    "books": ("a long crime novel", "a collection of short stories"),
    "coding": ("a mechanical keyboard for programmers", "a course in functional programming"),
    "cooking": ("a cast iron pan", "a bread knife"),
    "cycling": ("a folding bicycle", "a pannier that keeps water out"),
    "films": ("a box of silent films", "a season ticket for the cinema"),
    "gardening": ("a greenhouse for a balcony", "pruning shears"),
    "guitar": ("a twelve-string guitar", "an amplifier for practising at home"),
    "hiking": ("hiking boots for wide feet", "a light tent for one"),
    "homerepair": ("a cordless drill", "paint for a damp bathroom"),
    "knitting": ("a set of circular needles", "sock yarn"),
    "pets": ("a litter box for large cats", "a collar for a puppy"),
    "photography": ("a tripod for travelling", "a lens for portraits"),
    "railways": ("a model railway for a shelf", "a camera for pictures of trains"),
}
"""Things that people of one board know."""
TOPICS = {
    "astronomy": "light pollution in small towns",
    "boardgames": "games that end in a tie",
    "books": "novels with unreliable narrators",
    "coding": "comments in source code",
    "cooking": "leftovers on the second day",
    "cycling": "helmets for adults on bicycles",
    "films": "sequels that beat the first film",
    "gardening": "lawns without mowing",
    "guitar": "learning guitar without a teacher",
    "hiking": "mobile phones in mountain huts",
    "homerepair": "repairing old windows",
    "knitting": "knitting in meetings",
    "pets": "dogs at the office",
    "photography": "pictures straight from the camera",
    "railways": "quiet carriages on trains",
}
_BUDGETS = (40, 75, 120, 200, 350)


def boards_of(found: Mapping[str, str | Sequence[str]], name: str) -> Instances:
    """Return an instance for each of these values whose board is in the world; `name` is the parameter."""

    def instances(world: World) -> Iterator[Params]:
        for board in sorted(set(queries.boards(world)) & found.keys()):
            values = found[board]
            for value in [values] if isinstance(values, str) else values:
                yield {name: value}

    return instances


def board_of(found: Mapping[str, str | Sequence[str]], value: str) -> str:
    """Return the board to which a value belongs."""
    return next(board for board, values in found.items() if value == values or value in values)


def written(world: World, board: str, *texts: object) -> ExpectedResult:
    """Return the evaluators of a new post whose title and text include these texts, in any case."""
    newest = world.value("SELECT MAX(id) FROM forum_posts")
    number = queries.board(world, board)
    where = " AND ".join(["instr(lower(title || ' ' || body), ?)"] * len(texts))
    query = f"SELECT COUNT(*) FROM forum_posts WHERE id > {newest} AND author = {ME} AND {where}"
    included: Evaluator = QueryReturns(query, [[1]], [str(text).lower() for text in texts])
    return [Added("forum_posts", {"board": number, "author": ME, "deleted": 0, "url": None}), included]


def _post(page: PageReader, board: str, title: str, text: str) -> Iterator[str]:
    yield from steps.open_board(page, board)
    yield from steps.submit_post(page, title, text)


ask_where_fitting = ForumTemplate(
    "forum-ask-fitting",
    "change",
    "medium",
    since=2,
    intents=(
        'Post my question, "{question}", in a board where I am likely to get an answer.',
        'Find the board of the forum that is about such things, and ask there: "{question}"',
        'I want to know "{question}" Ask it in the most suitable board, not in one for questions of every kind.',
    ),
    instances=boards_of(QUESTIONS, "question"),
    expected=lambda world, question: written(world, board_of(QUESTIONS, question), question),
    solution=[do(_post, given(lambda question: board_of(QUESTIONS, question)), "{question}", "Thank you.")],
    mistake=[do(_post, "news", "{question}", "Thank you.")],
)


def _with_budget(world: World, rng: Random) -> Iterator[Params]:
    for row in boards_of(THINGS, "thing")(world):
        yield {**row, "budget": rng.choice(_BUDGETS)}


recommend_where_fitting = ForumTemplate(
    "forum-recommend-fitting",
    "change",
    "medium",
    since=2,
    intents=(
        'Ask for recommendations of "{thing}" within a budget of ${budget}, in the most appropriate board. Use these '
        "words and give the budget.",
        'I want to buy "{thing}" and can spend ${budget}. Ask the people of the right board what they recommend; name '
        "the thing in these words, and the amount.",
        'Which board knows most about "{thing}"? Post there, asking for recommendations up to ${budget}. The post has '
        "to contain the quoted words and the budget.",
    ),
    instances=_with_budget,
    expected=lambda world, thing, budget: written(world, board_of(THINGS, thing), thing, f"${budget}"),
    solution=[
        do(
            _post,
            given(lambda thing: board_of(THINGS, thing)),
            "Recommendations wanted",
            "I look for {thing} within a budget of ${budget}.",
        )
    ],
    mistake=[do(_post, given(lambda thing: board_of(THINGS, thing)), "Recommendations wanted", "I look for {thing}.")],
)

discuss_where_fitting = ForumTemplate(
    "forum-discuss-fitting",
    "change",
    "medium",
    since=2,
    intents=(
        'Start a discussion about "{topic}" in a relevant board; its title has these words. As the text, ask with the '
        'simple words "your opinion"',
        'In the board where it belongs, create a post with "{topic}" in its title. Its text is the prompt "your '
        'opinion"',
        'Let people discuss "{topic}" (put that into the title) in a board about the subject, and ask them for "your '
        'opinion" in the text.',
    ),
    instances=boards_of(TOPICS, "topic"),
    expected=lambda world, topic: written(world, board_of(TOPICS, topic), topic, "your opinion"),
    solution=[do(_post, given(lambda topic: board_of(TOPICS, topic)), "About {topic}", "your opinion")],
    mistake=[do(_post, "books", "About {topic}", "What do you think?")],
)


def _in_boards(world: World, rng: Random) -> Iterator[Params]:
    for board in sorted(set(queries.boards(world)) & THINGS.keys()):
        for thing in THINGS[board]:
            yield {"board": board, "thing": thing, "budget": rng.choice(_BUDGETS)}


recommend_in_board = ForumTemplate(
    "forum-recommend-in",
    "change",
    "medium",
    since=2,
    intents=(
        'Ask for product recommendations for "{thing}" within a budget of ${budget} in the board {board}.',
        'Write a post in {board} that asks what others recommend when somebody wants "{thing}" for at most ${budget}. '
        "Mention both.",
        'In {board}, ask which "{thing}" I should buy for no more than ${budget}; use the quoted words and the amount.',
    ),
    instances=_in_boards,
    expected=lambda world, board, thing, budget: written(world, board, thing, f"${budget}"),
    solution=[do(_post, "{board}", "Which would you buy?", "I look for {thing} and have ${budget}.")],
    mistake=[do(_post, "{board}", "Which would you buy?", "I look for {thing}.")],
)

_DAYS = ("March 28", "April 4", "April 11", "April 19", "May 2")
_TECHNIQUES = ("machine learning", "3D printing", "image recognition", "open data", "virtual reality")

announce_meetup = ForumTemplate(
    "forum-announce-meetup",
    "change",
    "medium",
    since=2,
    intents=(
        'Post a notice in the board {board} of a virtual meetup on {day}. Somewhere it says "virtual meetup" and the '
        "date.",
        'The people of {board} are to meet online on {day}. Announce this "virtual meetup" there, with its date.',
        'Write an announcement in {board}: there is a "virtual meetup" on {day}.',
    ),
    instances=choose(queries.each_board, times=2, day=_DAYS),
    expected=lambda world, board, day: written(world, board, "virtual meetup", day),
    solution=[do(_post, "{board}", "Virtual meetup on {day}", "Everybody is welcome.")],
    mistake=[do(_post, "{board}", "Virtual meetup", "Everybody is welcome.")],
)

technique_for_field = ForumTemplate(
    "forum-technique-for-field",
    "change",
    "medium",
    since=2,
    intents=(
        'Ask in the board {board} how "{technique}" could help in the field that it is about.',
        'Post in {board} about what "{technique}" could do for the people there, naming it in these words.',
        'Start a thread in {board} on the use of "{technique}" for its subject. Name the technique in the post.',
    ),
    instances=choose(queries.each_board, times=2, technique=_TECHNIQUES),
    expected=lambda world, board, technique: written(world, board, technique),
    solution=[do(_post, "{board}", "How could {technique} help us?", "What do you think?")],
    mistake=[do(_post, "{board}", "How could computers help us?", "What do you think?")],
)

_BOOKS = ("The Salt Road", "An Inventory of Rain", "Nine Bridges", "The Clockmaker's Apprentice", "A Winter Ledger")
_VERDICTS = ("good book!", "too long by half", "I read it twice", "the ending is worth the wait")

review_reading = ForumTemplate(
    "forum-review-reading",
    "change",
    "medium",
    since=2,
    intents=(
        'Post a review of what I have just read, "{title}", in the board books, with my comment "{text}"',
        'I have finished "{title}". Review it in the board books, under that title: "{text}"',
        'Tell the board books about my latest reading "{title}". My opinion of it: "{text}"',
    ),
    instances=lambda: [{"title": title, "text": text} for title in _BOOKS for text in _VERDICTS],
    expected=lambda world, title, text: written(world, "books", title, text),
    solution=[do(_post, "books", "My reading: {title}", "{text}")],
    mistake=[do(_post, "books", "My reading: {title}", "It was fine.")],
)
