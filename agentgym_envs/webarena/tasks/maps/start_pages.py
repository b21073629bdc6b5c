"""Tasks that start on the page of a place, a town, a route, a note, a list or a trace of the map."""

from __future__ import annotations

from collections.abc import Iterator

from agentgym_envs.webarena.sites.world import World
from agentgym_envs.webarena.tasks.maps import (
    edits,
    lookups,
    multi_step,
    navigation,
    nearby,
    notes,
    place_facts,
    queries,
    saved_lists,
    steps,
)
from agentgym_envs.webarena.tasks.maps.queries import MAP
from agentgym_envs.webarena.tasks.page_reader import PageReader, Steps
from agentgym_envs.webarena.tasks.steps import answer, click, do, given
from agentgym_envs.webarena.tasks.template import starting_on

_TOWN_HERE = given(lambda page: _town_here(page))
"""An argument of a step: the name of the town on the page."""


def _place_page(world: World, place: str, town: str = "") -> str:
    """Return the page of a place; its name is unique, but most instances name its town, too."""
    return queries.place_url(world, place)


def _start_of_route(world: World, start: str) -> str:
    return queries.place_url(world, start)


def _route_page(world: World, start: str, end: str, slow: str) -> str:
    return queries.directions(world, {"start": start, "end": end, "mode": slow})


def _list_page(world: World, list: str) -> str:
    return f"{MAP}/list/{queries.own_list(world, list)}"


def _trace_page(world: World, trace: str) -> str:
    return f"{MAP}/trace/{saved_lists.trace_id(world, trace)}"


def _newest_note(world: World, town: str) -> str:
    return f"{MAP}/note/{notes.newest_open(world, town)}"


def _own_note(world: World, town: str) -> str:
    return f"{MAP}/note/{world.value(f'SELECT n.id {notes.OWN_RESOLVED} AND t.name = ?', town)}"


def _town_here(page: PageReader) -> str:
    return page.all("heading")[0].name


def _open_street_here(page: PageReader, road: str) -> Iterator[str]:
    yield from page.expand("Streets")
    yield page.click("link", road, after="Streets")


def _minutes_saved_here(page: PageReader, fast: str) -> Steps[int]:
    longer = steps.read_summary(page).minutes
    yield from steps.change_mode(page, fast)
    return longer - steps.read_summary(page).minutes


show_history = starting_on(
    _place_page,
    lookups.show_history,
    "Show me the history of edits of this place.",
    "Open the list of all edits that the place on this page has seen.",
    "Bring up the edit history of the place that I am looking at.",
)
report_problem = starting_on(
    _place_page,
    notes.report_problem,
    'Report a problem at this place: "{text}"',
    'Add a note to the map about the place on this page that says "{text}"',
    'Something is wrong here. Leave a note at the place that I am looking at with the words "{text}"',
    difficulty="easy",
)
comment_on_note = starting_on(
    _place_page,
    notes.comment_on_note,
    'Comment on the open note about this place: "{text}"',
    'There is an open note about the place on this page. Add the comment "{text}" to it.',
    'Write "{text}" under the open note at this place.',
    difficulty="easy",
)
save_place = starting_on(
    _place_page,
    saved_lists.save_place,
    'Save this place to my list "{list}" with the note "{note}"',
    'Put the place on this page on my list "{list}", and write "{note}" beside it.',
    'Add the place that I am looking at to the list "{list}" of mine; my note on it is "{note}"',
    difficulty="easy",
)
correct_hours = starting_on(
    _place_page,
    edits.correct_hours,
    'Set the opening hours of this place to "{hours}". As what you changed, write "{comment}"',
    'The opening hours of the place on this page are "{hours}" now. Correct them, with the comment "{comment}"',
    'Edit this place: opening hours "{hours}", comment on the edit "{comment}"',
)
survey_access = starting_on(
    _place_page,
    edits.survey_access,
    'Record that this place has {access} wheelchair access; comment the edit with "{comment}"',
    'The place on this page offers {access} wheelchair access. Put that right, with the comment "{comment}"',
    'Change the wheelchair access of this place to {access}, and as what you changed write "{comment}"',
)
correct_contact = starting_on(
    _place_page,
    edits.correct_contact,
    'Edit this place once: phone "{phone}", website "{website}", and as what you changed "{comment}"',
    'In one edit, give the place on this page the phone "{phone}" and the website "{website}", commented "{comment}"',
    'This place has a new phone, "{phone}", and a new website, "{website}". One edit, comment "{comment}"',
)
nearest_place = starting_on(
    _place_page,
    nearby.nearest_place,
    "As the crow flies, which {kind} is nearest to this place?",
    "I am at the place on this page. Which {kind} is closest, measured in a straight line?",
    "Name the {kind} nearest to here in a straight line, from the place that I am looking at.",
    lead=[do(steps.find_near_here, "{kind}")],
    difficulty="easy",
)
count_nearby = starting_on(
    _place_page,
    nearby.count_nearby,
    "How many places of the kind {kind} lie within {distance} of this place, as the crow flies?",
    "Count the places of the kind {kind} that are at most {distance} from the place on this page in a straight line.",
    "In a circle of {distance} around this place, how many places are there of the kind {kind}?",
    solution=[do(steps.find_near_here, "{kind}", "{distance}"), *nearby.count_nearby.steps()[1:]],
    mistake=[do(steps.find_near_here, "{kind}", "50 km"), *nearby.count_nearby.steps()[1:]],
)
show_nearby = starting_on(
    _place_page,
    nearby.show_nearby,
    "Show me the places of the kind {kind} near this place, on the page of what is nearby.",
    "Bring up the list of places of the kind {kind} near the place on this page, by distance.",
    "Use the page of what is nearby to list the places of the kind {kind} around here.",
    lead=[do(steps.find_near_here, "{kind}")],
    difficulty="easy",
)
report_nearest = starting_on(
    _place_page,
    notes.report_nearest,
    'Find the {kind} that is nearest to this place in a straight line, and report there: "{text}"',
    'Leave the note "{text}" at whichever {kind} is closest to the place on this page as the crow flies.',
    'Which {kind} is nearest to here, as the crow flies? Add a note about it that says "{text}"',
    lead=[do(steps.find_near_here, "{kind}")],
    mistake=[do(steps.report_problem, "{text}")],
    difficulty="medium",
)
save_nearest = starting_on(
    _place_page,
    saved_lists.save_nearest,
    'Which {kind} is nearest to this place in a straight line? Put it on my list "{list}".',
    'Save the {kind} closest to the place on this page, as the crow flies, to my list "{list}".',
    'Find the {kind} that is the fewest metres from here in a straight line and add it to my list "{list}".',
    lead=[do(steps.find_near_here, "{kind}")],
    difficulty="medium",
)
nearest_phone = starting_on(
    _place_page,
    multi_step.nearest_phone,
    "What is the phone number of the {kind} nearest to this place in a straight line?",
    "I am at the place on this page and want to call the {kind} that is closest as the crow flies. What is its number?",
    "Find the {kind} that is nearest to here, as the crow flies, and tell me its phone number.",
    lead=[do(steps.find_near_here, "{kind}")],
    mistake=[answer(lambda page: page.value("Phone" if page.has("rowheader", "Phone") else "Address"))],
)
route_length = starting_on(
    _start_of_route,
    navigation.route_length,
    "How many kilometres is it {mode} from here to {end}? I am at the place on this page.",
    "What is the distance in kilometres from this place to {end}, going {mode}?",
    "I want to go from the place that I am looking at to {end} {mode}. How many kilometres is that?",
    lead=[do(steps.directions_from_here, "{end}", "{mode}")],
    difficulty="easy",
)
route_duration = starting_on(
    _start_of_route,
    navigation.route_duration,
    "How long does it take {mode} from this place to {end}?",
    "What is the travel time from the place on this page to {end} {mode}?",
    "I am going from here, the place that I am looking at, to {end} {mode}. How much time should I allow?",
    lead=[do(steps.directions_from_here, "{end}", "{mode}")],
)
show_route = starting_on(
    _start_of_route,
    navigation.show_route,
    "Show me the directions {mode} from this place to {end}.",
    "Bring up the route from the place on this page to {end} {mode}.",
    "Get directions from here to {end}, going {mode}.",
    lead=[do(steps.directions_from_here, "{end}", "{mode}")],
    mistake=[do(steps.directions_from_here, "{end}", "{mode}"), click("link", "Reverse")],
    difficulty="easy",
)
duration_difference = starting_on(
    _route_page,
    navigation.duration_difference,
    "How many minutes longer does this route take {slow} than {fast}?",
    "I am looking at a way {slow}. By how many minutes is one faster {fast} between the same two places?",
    "Compare going this way {slow} with going {fast}. How many minutes does the latter save?",
    solution=[do(_minutes_saved_here, "{fast}"), answer(lambda found: found)],
    mistake=[answer(lambda page: steps.read_summary(page).minutes)],
    difficulty="easy",
)
road_speed = starting_on(
    queries.town_url,
    lookups.road_speed,
    "What is the speed limit on {road} in this town, in km/h?",
    "How many km/h may one drive on {road} in the town on this page?",
    "Find out how fast, in km/h, cars may go on {road} in this town.",
    lead=[do(_open_street_here, "{road}")],
    difficulty="easy",
)
open_now = starting_on(
    queries.town_url,
    place_facts.open_now,
    "How many places of the kind {kind} in this town are open now?",
    "Count the places of the kind {kind} in the town on this page that are open now.",
    "Of all places of the kind {kind} in this town, how many are open at this moment?",
    lead=[do(steps.filter_places, "{kind}", _TOWN_HERE)],
)
served_food = starting_on(
    queries.town_url,
    place_facts.served_food,
    "Which restaurants in this town serve {cuisine} food? Name all of them.",
    "Where can one eat {cuisine} food in the town on this page? List every restaurant of that cuisine.",
    "Name all restaurants in this town whose cuisine is {cuisine}.",
    lead=[do(steps.filter_places, "restaurant", _TOWN_HERE)],
)
largest_of_kind = starting_on(
    queries.town_url,
    place_facts.largest_of_kind,
    "Which place of the kind {kind} in this town has the most {things}?",
    "Which {kind} in the town on this page has the largest number of {things}?",
    "Tell me the {kind} with the most {things} in this town.",
    lead=[do(steps.filter_places, "{kind}", _TOWN_HERE)],
)
open_notes = starting_on(
    queries.town_url,
    notes.open_notes,
    "How many notes in this town are still open?",
    "Count the open notes in the town on this page.",
    "What is the number of notes in this town that nobody has resolved yet?",
    lead=[do(notes.filter_notes, _TOWN_HERE, "Open")],
    mistake=[do(notes.filter_notes, _TOWN_HERE, "All"), answer(lambda page: steps.count(page, "note"))],
)
show_newest_note = starting_on(
    queries.town_url,
    notes.show_newest_note,
    "Open the newest of the open notes in this town.",
    "Show me the most recent note in the town on this page that is still open.",
    "Go to the page of the latest open note in this town.",
    lead=[do(notes.filter_notes, _TOWN_HERE, "Open")],
)
report_largest = starting_on(
    queries.town_url,
    multi_step.report_largest,
    'Report a problem at the {kind} in this town that has the most {things}: "{text}"',
    'Find the {kind} with the largest number of {things} in the town on this page, and add the note "{text}" about it.',
    'Which {kind} in this town has the most {things}? Leave a note there that says "{text}"',
    lead=[do(multi_step.list_by_size, "{kind}", _TOWN_HERE)],
)
save_largest = starting_on(
    queries.town_url,
    multi_step.save_largest,
    'Save the {kind} in this town that has the most {things} to my list "{list}".',
    'Find the {kind} with the largest number of {things} in the town on this page and put it on my list "{list}".',
    'Add to my list "{list}" whichever {kind} in this town has the most {things}.',
    lead=[do(multi_step.list_by_size, "{kind}", _TOWN_HERE)],
)
duration_to_largest = starting_on(
    _start_of_route,
    multi_step.duration_to_largest,
    "How long does it take by car from this place to the {kind} with the most {things} in {town}?",
    "Find the {kind} in {town} that has the most {things}. How much time is it by car from the place on this page to "
    "there?",
    "I drive from here to {town}, to the {kind} with the largest number of {things}. How long does that take from the "
    "place that I am looking at?",
    solution=multi_step.time_to_largest_here,
    mistake=[do(steps.directions_from_here, "{town}", "by car"), answer(steps.hedged_duration)],
)
resolve_newest = starting_on(
    _newest_note,
    notes.resolve_newest,
    'Resolve this note with the comment "{text}"',
    'The note on this page is still open. Mark it as resolved and say "{text}"',
    'What this note says is settled. Resolve it, with the words "{text}"',
    skip=2,
    difficulty="easy",
)
reopen_mine = starting_on(
    _own_note,
    notes.reopen_mine,
    'This note of mine was resolved too early. Reopen it with the comment "{text}"',
    'Reopen the note on this page, which is mine, and write "{text}"',
    'I opened this note. Open it again, saying "{text}"',
    skip=6,
    difficulty="easy",
)
rename_list = starting_on(
    _list_page,
    saved_lists.rename_list,
    'Rename this list to "{new}"',
    'The list on this page, which is mine, should be called "{new}" from now on.',
    'Change the name of this list to "{new}", and nothing else.',
    difficulty="easy",
)
share_trace = starting_on(
    _trace_page,
    saved_lists.share_trace,
    "Make this trace {visibility}.",
    "Change the visibility of the trace on this page to {visibility}.",
    "This trace of mine should be {visibility} from now on.",
    difficulty="easy",
)
tag_trace = starting_on(
    _trace_page,
    saved_lists.tag_trace,
    'Add the tag "{tag}" to this trace.',
    'Tag the trace on this page with "{tag}", and keep the tags that it has.',
    'This trace of mine should also have the tag "{tag}".',
    difficulty="easy",
)
delete_trace = starting_on(
    _trace_page,
    saved_lists.delete_trace,
    "Delete this trace.",
    "Remove the trace of mine that is on this page.",
    "I no longer want the trace that I am looking at on the site; delete it.",
    difficulty="easy",
)
