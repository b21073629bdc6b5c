"""Tasks of several steps, such as a search followed by a route or an edit."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

from agentgym_envs.webarena.evaluators.state import Added, Expected, Removed
from agentgym_envs.webarena.sites.world import World
from agentgym_envs.webarena.tasks.answers import Says, says, says_first
from agentgym_envs.webarena.tasks.instances import choose
from agentgym_envs.webarena.tasks.maps import queries, steps
from agentgym_envs.webarena.tasks.maps.queries import KEY_OF, MODE_OF, MODE_WORDS, NEARBY_CATEGORIES, MapTemplate
from agentgym_envs.webarena.tasks.page_reader import PageReader, Steps
from agentgym_envs.webarena.tasks.steps import answer, choose_option, click, do, given
from agentgym_envs.webarena.tasks.template import Params

_PROBLEMS = (
    "The number on the sign at the entrance is another one.",
    "Half of it is closed until the summer.",
    "It is being extended at the moment.",
    "Please somebody count again, I found fewer.",
)


def _nearest_phone_instances(world: World, rng: Random) -> Iterator[Params]:
    """Places with a clearly nearest one, which has a phone number."""
    for row in rng.sample(queries.places(world), 90):
        category = rng.choice(("hotel", "museum", "pharmacy", "bank", "library", "restaurant", "doctors", "hospital"))
        found = queries.clear_nearest(world, row["name"], category) if category != row["category"] else None
        if found is not None and found["phone"]:
            yield {"place": row["name"], "kind": queries.kind_words(category)}


def _nearest_phone_expected(world: World, place: str, kind: str) -> Says:
    first, *others = queries.nearest(world, place, KEY_OF[kind])[:12]
    return says(first["phone"], others=[row["phone"] for row in others if row["phone"]])


nearest_phone = MapTemplate(
    "maps-nearest-phone",
    "information",
    "medium",
    held_out=True,
    intents=(
        "What is the phone number of the {kind} nearest to {place} in a straight line?",
        "I am at {place} and want to call the {kind} that is closest as the crow flies. What is its number?",
        "Find the {kind} that is nearest to {place}, as the crow flies, and tell me its phone number.",
    ),
    instances=_nearest_phone_instances,
    expected=_nearest_phone_expected,
    solution=[
        do(steps.find_nearby, "{place}", "{kind}"),
        click("link", given(lambda page: page.table()[0]["Place"])),
        answer(lambda page: page.value("Phone")),
    ],
    mistake=[
        do(steps.open_place, "{place}"),
        answer(lambda page: page.value("Phone" if page.has("rowheader", "Phone") else "Address")),
    ],
)


def _fastest_of_three_instances(world: World, rng: Random) -> Iterator[Params]:
    """Three places of a category in the town of the start."""
    known = queries.unique_names(world)
    for start in rng.sample(queries.places(world), 300):
        near = queries.nearest(world, start["name"], rng.choice(NEARBY_CATEGORIES))[:9]
        names = [row["name"] for row in near if row["town"] == start["town"] and row["name"] in known]
        if len(names) > 2:
            chosen = dict(zip(("one", "two", "three"), rng.sample(names, 3), strict=True))
            params = {"start": start["name"], **chosen, "mode": MODE_WORDS[rng.choice(tuple(MODE_WORDS))]}
            first, second, _ = sorted(_times(world, params).values())
            if second > first + 1:
                yield params


def _times(world: World, params: Params) -> dict[str, int]:
    mode, names = MODE_OF[params["mode"]], (params["one"], params["two"], params["three"])
    return {name: queries.minutes(queries.route_between(world, mode, params["start"], name)) for name in names}


def _fastest_of_three_expected(world: World, params: Params) -> Says:
    times = _times(world, params)
    return says_first(sorted(times, key=lambda name: times[name]))


def _compare_times(page: PageReader, start: str, mode: str, one: str, two: str, three: str) -> Steps[str]:
    times = {}
    yield from steps.request_directions(page, start, one, mode)
    times[one] = steps.read_summary(page).minutes
    for name in (two, three):
        yield page.type("To", name)
        yield page.click("button", "Go")
        times[name] = steps.read_summary(page).minutes
    return min(times, key=lambda name: times[name])


fastest_of_three = MapTemplate(
    "maps-soonest-of-three",
    "information",
    "hard",
    intents=(
        "Going {mode} from {start}, which do I reach in the least time: {one}, {two} or {three}?",
        "Which of {one}, {two} and {three} can I reach in the least time {mode} from {start}?",
        "I set out from {start} {mode}. Compare {one}, {two} and {three}, and name the one that I reach soonest.",
    ),
    instances=_fastest_of_three_instances,
    expected=_fastest_of_three_expected,
    solution=_compare_times,
    mistake=[answer("{one} or {two}")],
)


def _round_trip_instances(world: World, rng: Random) -> Iterator[Params]:
    """Places in three towns, with both parts long enough for the site to give kilometres."""
    known = queries.unique_names(world)
    for start, over in queries.pairs(world, rng, 60, most_km=90, where="p.house IS NOT NULL"):
        end = rng.choice(queries.nearest(world, over["name"], rng.choice(NEARBY_CATEGORIES))[3:12])
        if len({start["town"], over["town"], end["town"]}) == 3 and end["name"] in known:
            yield {"start": start["name"], "over": over["name"], "end": end["name"], "mode": MODE_WORDS["bicycle"]}


def _round_trip_expected(world: World, start: str, over: str, end: str, mode: str) -> Says:
    routes = (queries.route_between(world, MODE_OF[mode], *part) for part in ((start, over), (over, end)))
    return says(f"{sum(map(queries.kilometres, routes)):.1f}")


def _add_lengths(page: PageReader, start: str, over: str, end: str, mode: str) -> Steps[str]:
    yield from steps.request_directions(page, start, over, mode)
    first = float(steps.read_summary(page).kilometres.replace(",", ""))
    yield page.type("From", over)
    yield page.type("To", end)
    yield page.click("button", "Go")
    return f"{first + float(steps.read_summary(page).kilometres.replace(',', '')):.1f} km"


round_trip = MapTemplate(
    "maps-round-trip",
    "information",
    "hard",
    intents=(
        "I go {mode} from {start} to {over} and then on to {end}. How many kilometres is that altogether?",
        "How many kilometres long is the trip {mode} from {start} by way of {over} to {end}, both parts together?",
        "Add up the kilometres {mode}: first from {start} to {over}, then from {over} to {end}.",
    ),
    instances=_round_trip_instances,
    expected=_round_trip_expected,
    solution=_add_lengths,
    mistake=[
        do(steps.request_directions, "{start}", "{over}", "{mode}"),
        answer(lambda page: steps.read_summary(page).length),
    ],
)


def time_to_largest_here(page: PageReader, kind: str, town: str) -> Steps[str]:
    """Read the time by car from the place on the page to the largest place of a kind in a town."""
    start = page.all("heading")[0].name
    yield from list_by_size(page, kind, town)
    yield from steps.request_directions(page, start, steps.listed_places(page, "place")[0], MODE_WORDS["car"])
    return steps.read_summary(page).time


def list_by_size(page: PageReader, kind: str, town: str) -> Iterator[str]:
    """List the places of a kind in a town, the largest first."""
    yield from steps.filter_places(page, kind, town)
    yield page.choose("Sort by", "Size, largest first")
    yield from steps.show_places(page)


report_largest = MapTemplate(
    "maps-report-largest",
    "change",
    "hard",
    intents=(
        'Report a problem at the {kind} in {town} that has the most {things}: "{text}"',
        'Find the {kind} with the largest number of {things} in {town}, and add the note "{text}" about it.',
        'Which {kind} in {town} has the most {things}? Leave a note there that says "{text}"',
    ),
    instances=choose(queries.largest_place_params, text=_PROBLEMS),
    expected=lambda world, params, text: [
        Added("map_notes", {"place": queries.largest(world, params)[0]["id"]}),
        Added("map_note_comments", {"account": 1, "action": "opened", "text": text}),
    ],
    solution=[
        do(list_by_size, "{kind}", "{town}"),
        click("link", steps.nth_place(0)),
        do(steps.report_problem, "{text}"),
    ],
    mistake=[
        do(list_by_size, "{kind}", "{town}"),
        click("link", steps.nth_place(-1)),
        do(steps.report_problem, "{text}"),
    ],
)


def _unsaved_largest(world: World) -> Iterator[Params]:
    """Yield places that are on none of the lists yet."""
    query = "SELECT s.id FROM map_saved s JOIN map_lists l ON l.id = s.list WHERE l.account = 1 AND s.place = ?"
    for params in queries.largest_place_params(world):
        if world.value(query, queries.largest(world, params)[0]["id"]) is None:
            yield params


save_largest = MapTemplate(
    "maps-save-largest",
    "change",
    "hard",
    intents=(
        'Save the {kind} in {town} that has the most {things} to my list "{list}".',
        'Find the {kind} with the largest number of {things} in {town} and put it on my list "{list}".',
        'Add to my list "{list}" whichever {kind} in {town} has the most {things}.',
    ),
    instances=choose(_unsaved_largest, list=queries.own_lists),
    expected=lambda world, params, list: Added(
        "map_saved", {"list": queries.own_list(world, list), "place": queries.largest(world, params)[0]["id"]}
    ),
    solution=[
        do(list_by_size, "{kind}", "{town}"),
        click("link", steps.nth_place(0)),
        choose_option("List", "{list}"),
        click("button", "Save to list"),
    ],
    mistake=[do(list_by_size, "{kind}", "{town}"), click("link", steps.nth_place(0))],
)


def _duration_to_largest_instances(world: World, rng: Random) -> Iterator[Params]:
    """Starting places in other towns."""
    for params in queries.largest_place_params(world):
        start = rng.choice(queries.places(world, "t.name != ? AND p.house IS NOT NULL", params["town"]))
        yield {**params, "start": start["name"]}


duration_to_largest = MapTemplate(
    "maps-way-to-largest",
    "information",
    "hard",
    intents=(
        "How long does it take by car from {start} to the {kind} with the most {things} in {town}?",
        "Find the {kind} in {town} that has the most {things}. How much time is it by car from {start} to there?",
        "I drive from {start} to {town}, to the {kind} with the largest number of {things}. How long does that take?",
    ),
    instances=_duration_to_largest_instances,
    expected=lambda world, params, start: queries.travel_time(
        world, "car", start, queries.largest(world, params)[0]["name"]
    ),
    solution=[
        do(list_by_size, "{kind}", "{town}"),
        do(steps.request_directions, "{start}", steps.nth_place(0), MODE_WORDS["car"]),
        answer(lambda page: steps.read_summary(page).time),
    ],
    mistake=[do(steps.request_directions, "{start}", "{town}", MODE_WORDS["car"]), answer(steps.hedged_duration)],
)


def _two_largest_towns_instances(world: World) -> list[Params]:
    """Regions with at least three towns."""
    query = "SELECT r.name FROM map_regions r JOIN map_towns t ON t.region = r.id GROUP BY r.id HAVING COUNT(*) > 2"
    regions = [row["name"] for row in world.rows(f"{query} ORDER BY r.id")]
    return [{"region": region, "mode": mode} for region in regions for mode in MODE_OF if mode != MODE_WORDS["foot"]]


def _two_largest_towns_expected(world: World, region: str, mode: str) -> Says:
    query = "SELECT t.name FROM map_towns t JOIN map_regions r ON r.id = t.region WHERE r.name = ?"
    first, second = world.rows(f"{query} ORDER BY t.population DESC LIMIT 2", region)
    return says(
        f"{queries.kilometres(queries.route_between_towns(world, MODE_OF[mode], first['name'], second['name'])):.1f}"
    )


def _route_between_first(page: PageReader, mode: str) -> Iterator[str]:
    """Request directions between the first two towns of the table."""
    first, second = (row["Town"] for row in page.table()[:2])
    yield from steps.request_directions(page, first, second, mode)


two_largest_towns = MapTemplate(
    "maps-two-largest-towns",
    "information",
    "hard",
    held_out=True,
    intents=(
        "How many kilometres is it {mode} between the two towns of {region} with the most inhabitants?",
        "Take the two largest towns of {region} by population. How far in kilometres is one from the other {mode}?",
        "How many kilometres is it {mode} from the most populous town of {region} to the second most populous?",
    ),
    instances=_two_largest_towns_instances,
    expected=_two_largest_towns_expected,
    solution=[
        click("link", "Towns"),
        choose_option("Region", "{region}"),
        choose_option("Sort by", "Population, largest first"),
        click("button", "Show"),
        do(_route_between_first, "{mode}"),
        answer(lambda page: steps.read_summary(page).kilometres),
    ],
    mistake=[
        click("link", "Towns"),
        choose_option("Region", "{region}"),
        click("button", "Show"),
        do(_route_between_first, "{mode}"),
        answer(lambda page: steps.read_summary(page).time),
    ],
)


def _move_saved_instances(world: World, rng: Random) -> Iterator[Params]:
    """Places that are on a single list."""
    lists = queries.own_lists(world)
    for row in world.rows(f"{_SAVED} GROUP BY p.id HAVING COUNT(*) = 1 ORDER BY s.id"):
        new = rng.choice([name for name in lists if name != row["old"]])
        if len(world.rows("SELECT id FROM map_places WHERE name = ?", row["place"])) == 1:
            yield {"place": row["place"], "old": row["old"], "new": new}


def _moved(world: World, place: str, old: str, new: str) -> list[Expected]:
    number = queries.place(world, place)["id"]
    removed = Removed("map_saved", {"list": queries.own_list(world, old), "place": number})
    return [removed, Added("map_saved", {"list": queries.own_list(world, new), "place": number})]


move_saved = MapTemplate(
    "maps-move-saved",
    "change",
    "medium",
    held_out=True,
    intents=(
        'Move {place} from my list "{old}" to my list "{new}".',
        'Take {place} off my list "{old}" and put it on "{new}" instead.',
        '{place} belongs on my list "{new}", not on "{old}". Move it there.',
    ),
    instances=_move_saved_instances,
    expected=_moved,
    solution=[
        do(steps.open_place, "{place}"),
        click("button", "Remove from {old}"),
        choose_option("List", "{new}"),
        click("button", "Save to list"),
    ],
    mistake=[do(steps.open_place, "{place}"), choose_option("List", "{new}"), click("button", "Save to list")],
)

_SAVED = (
    "SELECT p.name AS place, l.name AS old FROM map_saved s JOIN map_lists l ON l.id = s.list "
    "JOIN map_places p ON p.id = s.place WHERE l.account = 1"
)
