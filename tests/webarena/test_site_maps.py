"""The map: pages, the effects of forms, and routing."""

from __future__ import annotations

import random
import re
import time
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from agentgym_envs.webarena.sites.framework.site import PASSWORD
from agentgym_envs.webarena.sites.maps.geometry import degrees, position
from agentgym_envs.webarena.sites.maps.hours import days, is_open, is_valid
from agentgym_envs.webarena.sites.maps.network import MODES, Network, network
from agentgym_envs.webarena.sites.maps.routes import find_route
from agentgym_envs.webarena.sites.world import world
from tests.webarena.embedded import Visitor, printed_by_two_processes, visit

HOSTILE = """<script>alert(1)</script>"><img src=x onerror=alert(1)> {{ 7*7 }} {% raw %} ' " & é"""
STRANGER = "SELECT id FROM map_lists WHERE account != 1 LIMIT 1"


class Map(Visitor):
    def get(self, path: str, status: int = 200, **how: Any) -> str:
        """Return the text of a page, following redirects."""
        return super().get(path, status, follow_redirects=True, **how)


@pytest.fixture
def maps() -> Iterator[Map]:
    yield from visit(Map("maps"))


# --- the world -------------------------------------------------------------------------------------------------------


_DIGEST = """
import hashlib, random
from importlib.resources import files
from agentgym_envs.webarena.sites import country, people, world
from agentgym_envs.webarena.sites.maps.seed_data import fill
database = world.connect()
database.executescript(files("agentgym_envs.webarena.sites.maps").joinpath("schema.sql").read_text())
land = country.make_country(random.Random("country/5"))
fill(database, world.SeedInputs(land, people.make_people(random.Random("people/5"), land), random.Random("maps/5")))
print(hashlib.sha256("\\n".join(database.iterdump()).encode()).hexdigest())
"""


@pytest.mark.slow
def test_worlds_are_reproducible() -> None:
    printed_by_two_processes(_DIGEST)


def test_every_foreign_key_is_valid() -> None:
    database = world(1).database
    query = "SELECT name FROM sqlite_master WHERE type = 'table' AND name LIKE 'map!_%' ESCAPE '!'"
    tables = [row[0] for row in database.execute(query)]
    for table in tables:
        assert database.execute(f"PRAGMA foreign_key_check({table})").fetchall() == [], table


def test_places_are_varied_and_have_unique_names() -> None:
    rows = world(1).rows("SELECT name, category, town, road, house FROM map_places")
    assert len(rows) > 1_200
    assert len({row["category"] for row in rows}) > 40
    houses = Counter((row["road"], row["house"]) for row in rows if row["house"])
    assert max(houses.values()) == 1
    named = Counter((row["name"], row["town"]) for row in rows)
    assert max(named.values()) == 1
    sizes = Counter(row["town"] for row in rows)
    assert max(sizes.values()) > 2.5 * min(sizes.values()) and len(sizes) == 30


def test_times_of_notes_and_edits_are_in_order() -> None:
    initial = world(1)
    earlier = (
        "SELECT COUNT(*) FROM map_note_comments a JOIN map_note_comments b ON a.note = b.note AND a.id < b.id "
        "WHERE a.moment > b.moment"
    )
    assert initial.value(earlier) == 0
    assert initial.value("SELECT COUNT(*) FROM map_notes WHERE (status = 'resolved') != (closed IS NOT NULL)") == 0
    assert initial.value("SELECT COUNT(*) FROM map_notes WHERE closed < opened") == 0
    latest = (
        "SELECT max(m) FROM (SELECT max(moment) AS m FROM map_changes UNION SELECT max(moment) FROM map_note_comments)"
    )
    assert initial.value(latest) <= "2026-03-16 10:30:00"
    edits = "(SELECT COUNT(*) FROM map_changes c WHERE c.place = p.id)"
    versions = f"SELECT COUNT(*) FROM map_places p WHERE version != 1 + {edits}"
    assert initial.value(versions) == 0


@pytest.mark.slow
def test_worlds_differ() -> None:
    names = [{row["name"] for row in world(seed).rows("SELECT name FROM map_places")} for seed in (1, 2)]
    assert len(names[0] & names[1]) < len(names[0]) / 3


def test_opening_hours_have_one_format() -> None:
    all_hours = [row["hours"] for row in world(1).rows("SELECT DISTINCT hours FROM map_places WHERE hours IS NOT NULL")]
    assert all(map(is_valid, all_hours)) and len(all_hours) > 40
    assert dict(days("Mo-Fr 08:00-12:30; Mo,Tu 14:00-18:00; Fr-Sa 07:00-24:00")) == {
        "Monday": "08:00–12:30, 14:00–18:00",
        "Tuesday": "08:00–12:30, 14:00–18:00",
        "Wednesday": "08:00–12:30",
        "Thursday": "08:00–12:30",
        "Friday": "07:00–24:00",
        "Saturday": "07:00–24:00",
        "Sunday": "closed",
    }
    assert is_open("Mo 10:30-11:00") and not is_open("Mo 10:00-10:30") and not is_open("Tu-Su 10:00-18:00")
    assert is_open("24/7") and not is_valid("Mo-Xx 10:00-11:00") and not is_valid("9-5") and not is_valid("")


# --- routes ----------------------------------------------------------------------------------------------------------


def _slowly(net: Network, mode: str, start: tuple[float, float], end: tuple[float, float]) -> float:
    """Return the cost of the fastest route in milliseconds, by relaxing every edge until nothing changes."""
    (first, begin), (last, stop) = net.snap(start, mode), net.snap(end, mode)
    costs = {number: float("inf") for number in net.points}
    piece, whole = net.segments[first], net.cost(first, mode)
    costs[piece.source], costs[piece.target] = begin * whole, (1 - begin) * whole
    usable = [(one, net.cost(number, mode)) for number, one in net.segments.items() if net.roads[one.road].takes(mode)]
    while True:
        before = dict(costs)
        for one, cost in usable:
            costs[one.source] = min(costs[one.source], costs[one.target] + cost)
            costs[one.target] = min(costs[one.target], costs[one.source] + cost)
        if costs == before:
            break
    goal, cost = net.segments[last], net.cost(last, mode)
    ways = [costs[goal.source] + stop * cost, costs[goal.target] + (1 - stop) * cost]
    return min([*ways, abs(stop - begin) * whole] if first == last else ways)


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("mode", MODES)
def test_find_route_returns_the_fastest_route(mode: str) -> None:
    net, rng = network(world(1).database), random.Random(mode)
    places = world(1).rows("SELECT x, y FROM map_places ORDER BY id")
    for _ in range(4):
        start, end = ((row["x"], row["y"]) for row in rng.sample(places, 2))
        route = find_route(net, mode, start, end)
        assert route.seconds == pytest.approx(_slowly(net, mode, start, end) / 1000, abs=1)
        assert sum(step.metres for step in route.steps) == pytest.approx(route.metres, abs=len(route.steps))


def test_a_route_may_be_on_one_street_or_have_no_length() -> None:
    net = network(world(1).database)
    segment = next(number for number, one in net.segments.items() if one.length > 200 and net.roads[one.road].town)
    (x, y), (a, b) = net.ends(segment)
    inner = (x + 0.3 * (a - x), y + 0.3 * (b - y)), (x + 0.6 * (a - x), y + 0.6 * (b - y))
    route = find_route(net, "foot", *inner)
    assert route.metres == pytest.approx(0.3 * net.segments[segment].length, abs=2) and len(route.steps) == 2
    assert find_route(net, "car", inner[0], inner[0]).metres == 0


def test_routing_is_fast() -> None:
    net, rng = network(world(1).database), random.Random(3)
    places = world(1).rows("SELECT x, y FROM map_places ORDER BY id")
    pairs = [[(row["x"], row["y"]) for row in rng.sample(places, 2)] for _ in range(40)]
    begin = time.process_time()
    for start, end in pairs:
        find_route(net, rng.choice(list(MODES)), start, end)
    assert (time.process_time() - begin) / len(pairs) < 0.02


def test_pedestrians_and_cyclists_avoid_motorways() -> None:
    net = network(world(1).database)
    for mode in ("bicycle", "foot"):
        kinds = {net.roads[net.segments[way.segment].road].kind for ways in net.ways[mode].values() for way in ways}
        assert not kinds & {"motorway", "link"}
    streets = {net.roads[net.segments[way.segment].road].kind for ways in net.ways["car"].values() for way in ways}
    assert not streets & {"pedestrian", "path"}


def test_positions_round_trip_through_degrees() -> None:
    rng = random.Random(1)
    for _ in range(200):
        coordinates = degrees((rng.uniform(0, 420), rng.uniform(0, 300)))
        assert degrees(position(*coordinates)) == coordinates


# --- pages -----------------------------------------------------------------------------------------------------------


PATHS = """
/ /?at=town-1 /?lat=47.1&lon=-31.0&zoom=9 /?zoom=99&lat=x /about /places?open=1&stars=3&page=99 /search /search?q=%25
/search?q=near+ /nearby /nearby?near=Nowhere /directions /directions?from=Home /towns?sort=population&region=2 /town/1
/directions?from=place-0&to=town-99999999999 /region/1 /road/1 /place/1 /place/1/history /place/1/edit /places/new
/notes?whose=opened /note/1 /notes/new?at=zzz /lists /lists/public /lists/new /list/1 /list/1/edit /trace/1
/traces?sort=longest&mode=foot /trace/1/edit /history?town=1 /contributors?sort=name
/settings /tiles/3/2/1.svg /place/1?map=5/47.1/-31.0
"""


@pytest.mark.slow_after(5)
@pytest.mark.parametrize("path", PATHS.split())
def test_pages_respond_to_any_query(maps: Map, path: str) -> None:
    maps.get(path)


@pytest.mark.parametrize(
    "path", ["/place/999999", "/town/0", "/region/77", "/road/9999", "/note/0", "/list/999", "/trace/0"]
)
def test_missing_pages_are_404(maps: Map, path: str) -> None:
    maps.get(path, 404)


def test_pages_for_accounts_require_login(maps: Map) -> None:
    maps.post("/sign-out")
    for path in (
        "/lists",
        "/lists/new",
        "/settings",
        "/places/new",
        "/place/1/edit",
        "/notes?whose=opened",
        "/traces?whose=me",
    ):
        assert maps.http.get(path).headers["location"].startswith("/sign-in?")
    assert "Your lists" not in maps.get("/place/1") and "Home:" not in maps.get("/")
    other = maps.value("SELECT user FROM map_accounts WHERE id = 2")
    assert maps.post("/sign-in", user=other.upper(), password=PASSWORD, after="/settings") == "/settings"
    assert other in maps.get("/settings")


def test_search_understands_categories_and_locations(maps: Map) -> None:
    town = maps.value("SELECT name FROM map_towns WHERE id = 1")
    count = maps.value("SELECT COUNT(*) FROM map_places WHERE town = 1 AND category = 'museum'")
    for words in (f"museums in {town}", f"Museum in {town}", f"museums {town}", f"museum, {town}"):
        assert f"{count} results" in maps.get(f"/search?q={words}")
    assert f"the nearest to {town} first" in maps.get(f"/search?q=cafes near {town}")
    name = maps.value("SELECT name FROM map_places WHERE category = 'castle'")
    assert "1 result for" in maps.get(f"/search?q={name}")
    nothing = maps.get("/search?q=museums near Atlantis")
    assert "Nothing was found" in nothing and 'People are found under <a href="/contributors">' in nothing
    assert "Address" in maps.get(f"/search?q=12 {_street(maps)}, {town}")


def _street(maps: Map) -> str:
    return str(maps.value("SELECT name FROM map_roads WHERE town = 1 AND kind = 'residential'"))


def test_filters_match_the_database(maps: Map) -> None:
    where = "category = 'restaurant' AND wheelchair = 'yes' AND outdoor = 1 AND cuisine = 'italian'"
    count = maps.value(f"SELECT COUNT(*) FROM map_places WHERE {where}")
    page = maps.get("/places?category=restaurant&wheelchair=yes&outdoor=1&cuisine=italian")
    assert f"<h2>{count} place{'s' if count != 1 else ''}</h2>" in page
    rows = maps.episode.database.execute("SELECT hours FROM map_places WHERE category = 'museum'").fetchall()
    assert f"<h2>{sum(is_open(row['hours']) for row in rows)} place" in maps.get("/places?category=museum&open=1")
    query = "SELECT name FROM map_places WHERE category = 'peak' ORDER BY elevation DESC"
    names = [row["name"] for row in maps.episode.database.execute(query)]
    page = maps.get("/places?category=peak&sort=height")
    assert re.findall(r'<li><a href="/place/\d+">([^<]+)', page) == names[:10]


def test_nearby_is_sorted_by_distance_over_all_pages(maps: Map) -> None:
    found = re.findall(
        r"<td>([\d.,]+) (k?m)</td>", "".join(maps.get(f"/nearby?near=town-1&category=cafe&page={n}") for n in (1, 2, 3))
    )
    metres = [float(number.replace(",", "")) * (1000 if unit == "km" else 1) for number, unit in found]
    assert len(metres) == 30 and metres == sorted(metres)
    assert "There is none that near" in maps.get("/nearby?near=point-48.5,-33.3&category=airport&within=1")


def test_directions_have_one_url_for_all_inputs(maps: Map) -> None:
    query = "SELECT p.id, p.name, t.name AS town FROM map_places p JOIN map_towns t ON t.id = p.town"
    first, second = maps.world.rows(f"{query} WHERE category = 'hotel' ORDER BY p.id LIMIT 2")
    expected = f"/directions?from=place-{first['id']}&to=place-{second['id']}&mode=car"
    for start in (first["name"], first["name"].upper(), f"{first['name']}, {first['town']}", f"place-{first['id']}"):
        response = maps.http.get("/directions", params={"from": start, "to": second["name"], "mode": "car"})
        assert response.headers["location"] == expected
    page = maps.get(expected)
    assert "Distance:" in page and f"Arrive at {second['name']}" in page
    assert "Which one do you mean?" in maps.get("/directions?from=Park&to=Home&mode=foot")
    assert "Nothing on the map is called “Atlantis”" in maps.get("/directions?from=Atlantis&to=Home")


def test_units_follow_the_account_settings(maps: Map) -> None:
    way = "/directions?from=town-1&to=town-2&mode=car"
    assert re.search(r"Distance: <strong>[\d.]+ km", maps.get(way))
    maps.post("/settings", about="", units="miles", mode="bicycle")
    assert re.search(r"Distance: <strong>[\d.]+ mi", maps.get(way))
    assert "mode=bicycle" in maps.http.get("/directions?from=town-1&to=town-2").headers["location"]


# --- changes ---------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_an_edit_changes_a_place_and_is_logged(maps: Map) -> None:
    row = dict(maps.world.rows("SELECT * FROM map_places WHERE id = 7")[0])
    form: dict[str, Any] = {
        name: row[name] or "" for name in ("name", "hours", "website", "operator", "wheelchair", "internet")
    }
    assert maps.post("/place/7/edit", phone="099 555 1234", comment="Asked them", **form) == "/place/7"
    log, change = maps.changed()
    assert log[0] == "map_changes" and log[2]["comment"] == "Asked them" and log[2]["version"] == row["version"] + 1
    assert change[2].items() >= {"changed": "2026-03-16 10:30:00", "phone": "099 555 1234"}.items()
    assert set(change[2]) <= {"changed", "phone", "version", "editor"}
    assert maps.value("SELECT editor FROM map_places WHERE id = 7") == 1
    maps.post("/place/7/edit", phone="099 555 1234", comment="Again", **form)
    assert len(maps.changed()) == 2, "nothing differed"


@pytest.mark.slow_after(1)
@pytest.mark.parametrize(
    ("field", "value"), [("name", ""), ("hours", "nine to five"), ("website", "javascript:alert(1)"), ("comment", "")]
)
def test_an_invalid_edit_is_shown_again(maps: Map, field: str, value: str) -> None:
    form: dict[str, Any] = {
        "name": "Kept as typed",
        "hours": "24/7",
        "website": "https://a.example",
        "comment": "x",
        field: value,
    }
    page = maps.post("/place/7/edit", 422, **form)
    assert 'role="alert"' in page and (field == "name" or "Kept as typed" in page)
    assert maps.changed() == []


def test_a_place_can_be_added_at_an_address(maps: Map) -> None:
    town, street = maps.value("SELECT name FROM map_towns WHERE id = 1"), _street(maps)
    form: dict[str, Any] = {
        "name": "The Test Tube",
        "category": "cafe",
        "hours": "Mo-Fr 09:00-17:00",
        "comment": "New here",
    }
    assert "Please give one address" in maps.post("/places/new", 422, where="Atlantis", **form)
    assert "what kind of place" in maps.post("/places/new", 422, where="x", **{**form, "category": "volcano"})
    path = maps.post("/places/new", where=f"12 {street}, {town}", **form)
    added = {table: after for table, before, after in maps.changed() if before is None}
    assert set(added) == {"map_places", "map_changes"} and added["map_places"]["house"] == 12
    assert f"12 {street}" in maps.get(path) and "The Test Tube" in maps.get("/search?q=test tube")


def test_notes_are_opened_commented_on_resolved_and_reopened(maps: Map) -> None:
    name = maps.value("SELECT name FROM map_places WHERE category = 'castle'")
    note = maps.post("/notes/new", where=name, text="The gate is on the other side.")
    assert maps.value("SELECT place FROM map_notes WHERE id = ?", int(note.rpartition("/")[2])) is not None
    maps.post(note, action="commented", text="Seen today.")
    maps.post(note, action="reopened")
    assert maps.value("SELECT status FROM map_notes ORDER BY id DESC") == "open"
    maps.post(note, action="resolved")
    maps.post(note, action="commented", text="Too late")
    assert "Resolved since Mar 16, 2026" in re.sub("<[^>]+>", "", maps.get(note))
    maps.post(note, action="reopened", text="Not yet.")
    tables = Counter(table for table, _, _ in maps.changed())
    assert tables == {"map_notes": 1, "map_note_comments": 4}
    assert "only one place fits" in maps.post("/notes/new", 422, where="Park", text="x")
    assert "what is wrong" in maps.post("/notes/new", 422, where=name, text=" ")
    assert "write something" in maps.post(note, 422, action="commented", text="")


@pytest.mark.slow
def test_a_list_is_created_edited_and_deleted(maps: Map) -> None:
    made = maps.post("/lists/new", name="Rainy days", about="Indoors", visibility="public")
    number = int(made.rpartition("/")[2])
    assert "already" in maps.post("/lists/new", 422, name="rainy DAYS")
    maps.post("/place/3/save", list=number, note="With umbrella")
    maps.post("/place/3/save", list=number, note="Twice")
    assert [table for table, _, _ in maps.changed()] == ["map_lists", "map_saved"]
    assert "With umbrella" in maps.get(made)
    saved = maps.value("SELECT id FROM map_saved WHERE list = ?", number)
    maps.post(f"/saved/{saved}/note", note="Better")
    assert maps.value("SELECT note FROM map_saved WHERE id = ?", saved) == "Better"
    maps.post(f"/saved/{saved}/remove")
    maps.post(f"{made}/edit", name="Dry days", about="", visibility="private")
    assert next(after for _, _, after in maps.changed())["visibility"] == "private"
    maps.post(f"{made}/delete")
    assert maps.changed() == []


def test_items_of_other_users_cannot_be_changed(maps: Map) -> None:
    other = maps.value(STRANGER)
    saved = maps.value("SELECT id FROM map_saved WHERE list = ?", other)
    trace = maps.value("SELECT id FROM map_traces WHERE account != 1 AND visibility = 'private'")
    for path in (f"/list/{other}/edit", f"/list/{other}/delete", f"/saved/{saved}/remove", f"/saved/{saved}/note"):
        maps.post(path, 403, name="Mine now")
    maps.post("/place/3/save", 403, list=other)
    maps.post(f"/trace/{trace}/edit", 403, name="Mine now")
    maps.post(f"/trace/{trace}/delete", 403)
    maps.get(f"/trace/{trace}", 403)
    maps.get(f"/list/{other}/edit", 403)
    maps.episode.database.execute("UPDATE map_lists SET visibility = 'private' WHERE id = ?", (other,))
    maps.get(f"/list/{other}", 403)
    assert [(table, after) for table, _, after in maps.changed()] == [("map_lists", {"visibility": "private"})]


def test_traces_are_edited_with_their_tags_and_deleted(maps: Map) -> None:
    trace = maps.value("SELECT id FROM map_traces WHERE account = 1")
    maps.post(f"/trace/{trace}/edit", name="Better name", about="", visibility="public", tags="hills, Rain,hills")
    tags = [row[0] for row in maps.episode.database.execute("SELECT tag FROM map_trace_tags WHERE trace = ?", (trace,))]
    assert sorted(tags) == ["hills", "rain"]
    assert "eight words" in maps.post(f"/trace/{trace}/edit", 422, name="x", tags="two words")
    assert "needs a name" in maps.post(f"/trace/{trace}/edit", 422, name="", tags="")
    maps.post(f"/trace/{trace}/delete")
    assert maps.value("SELECT COUNT(*) FROM map_traces WHERE id = ?", trace) == 0


def test_addresses_are_saved_in_the_settings(maps: Map) -> None:
    town = maps.value("SELECT name FROM map_towns WHERE id = 2")
    street = maps.value("SELECT name FROM map_roads WHERE town = 2 AND kind = 'residential'")
    assert "one address" in maps.post("/settings/addresses", 422, home="Atlantis", work="")
    work = f"7 {street}, {town}"
    home = re.search(r'name="home"[^>]*value="([^"]*)"', maps.get("/settings"))
    assert home is not None
    maps.post("/settings/addresses", home=home[1], work=work)
    assert [table for table, _, _ in maps.changed()] == ["map_addresses"]
    assert f'value="{work}"' in maps.get("/settings")
    maps.post("/settings/addresses", home=home[1], work="")
    assert maps.value("SELECT COUNT(*) FROM map_addresses WHERE account = 1") == 1


def test_hostile_text_is_escaped(maps: Map) -> None:
    note = maps.post("/notes/new", where="Home", text=HOSTILE)
    made = maps.post("/lists/new", name=HOSTILE[:60], about=HOSTILE)
    form: dict[str, Any] = {"name": HOSTILE[:80], "comment": HOSTILE, "phone": "<b>1</b>"}
    maps.post("/place/3/edit", **form)
    maps.post("/settings", about=HOSTILE, units="km", mode="car")
    paths = [note, made, "/place/3", "/place/3/history", "/?at=place-3&zoom=9", "/notes", "/lists", "/history"]
    paths += [f"/user/{maps.value('SELECT user FROM map_accounts WHERE id = 1')}", "/place/3/edit", "/directions"]
    for path in paths:
        page = maps.http.get(path).text
        assert "<script>alert" not in page and "<img src=x" not in page and "<b>1</b>" not in page, path
        assert "49 {% raw" not in page
    response = maps.http.get("/search", params={"q": HOSTILE}).text
    assert "<script>alert" not in response
