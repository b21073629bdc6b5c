"""Teams in Chromium: a column per agent, and lines for messages and gifts."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agentgym_envs.rollout.token_file import TokenWriter
from agentgym_envs.trajectory import TrajectoryWriter
from tests.multiagent.engines import CODEC
from tests.viewer.showing import NAMED, chromium, roles_and_names, serving
from tests.viewer.teams import HOSTILE, hostile, played, team_record, with_tokens
from tests.viewer.test_pages import PHONE, opened, shown, status, until

pytestmark = pytest.mark.slow

ODD = {"crafter_0": "fly to the moon", "crafter_1": 'say I have "nothing".'}
SEEN = {"a": "a room", "b": "a hall"}
WORDS, TALK, TRIO, QUARTET, ALTERNATING, EVIL, MALFORMED, CROWD = range(8)
MIDDLES = """(selector) => [...document.querySelectorAll(selector)].map((node) => {
  const { left, right } = node.getBoundingClientRect();
  return (left + right) / 2;
})"""


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """By number: two of one task with tokens, three and four agents, a planner and an actor with tokens, and others."""
    actor = {"task": "textcraft/22", "env_id": "AgentGym/PlannerActor-v0"}
    six = [f"agent {n}" for n in range(6)]
    wave = {"agents": {name: {"messages": [{"from": six[0], "text": "Hi."}]} for name in six[1:]}}
    silent = (SEEN, "nothing in JSON", {"invalid_action": "This is no joint action."})
    again: tuple[Any, Any, Any] = ("This is no joint action.", {"a": "go", "b": None}, {})
    made: list[Any] = [
        with_tokens(),
        with_tokens(ODD),
        played(num_agents=3, seed=1),
        played(num_agents=4, seed=1),
        with_tokens(**actor),
        hostile(),
        team_record(silent, again, last=SEEN),
        team_record((dict.fromkeys(six, "x"), dict.fromkeys(six, "y"), wave), last="The end.", agents=six),
    ]
    file = tmp_path_factory.mktemp("teams") / "t.jsonl"
    with TrajectoryWriter(file) as writer, TokenWriter(file) as tokens:
        for one in made:
            mark = writer.write(getattr(one, "trajectory", one))
            if streams := getattr(one, "per_agent", None):
                tokens.write(mark, list(streams.values()), CODEC)
    return file


@pytest.fixture(scope="module")
def browser(path: Path) -> Iterator[Any]:  # the episodes are played first, as Playwright runs an event loop
    with chromium() as made:
        yield made


@pytest.fixture(scope="module")
def address(path: Path) -> Iterator[str]:
    with serving(path) as url:
        yield url


def turn(page: Any, number: int) -> Any:
    return page.get_by_role("article", name=f"Turn {number}", exact=True)


@pytest.mark.parametrize(
    ("number", "agents"), [(WORDS, 2), pytest.param(TRIO, 3, marks=pytest.mark.rotating), (QUARTET, 4)]
)
def test_agents_are_columns_or_rows_on_a_phone(browser: Any, address: str, number: int, agents: int) -> None:
    for options, along in (({}, "x"), (PHONE, "y")):
        with shown(browser, address, f"#/episode/{number}", **options) as page:
            boxes = [member.bounding_box() for member in turn(page, 1).locator(".member").all()]
            assert len(boxes) == agents and len({round(box[along]) for box in boxes}) == agents
            assert len({round(box["x" if along == "y" else "y"]) for box in boxes}) == 1
            assert page.evaluate("document.documentElement.scrollWidth") == page.viewport_size["width"]


def test_cell_shows_observation_action_and_error(browser: Any, address: str) -> None:
    with shown(browser, address, f"#/episode/{TALK}") as page:
        first, second = (turn(page, 1).get_by_role("region", name=f"crafter_{n}") for n in (0, 1))
        assert "You are crafter_0. With you" in first.locator(".seen .body").inner_text()
        assert first.locator(".act > .body").inner_text() == "fly to the moon"
        assert "Invalid" in first.inner_text() and "Not carried out: Could not execute" in first.inner_text()
        assert "Invalid" not in second.inner_text()
        looks = [
            part.locator(".act > .body").evaluate("(node) => getComputedStyle(node).backgroundColor")
            for part in (first, second)
        ]
        assert looks[0] != looks[1], "the invalid one is highlighted"
        assert turn(page, 1).locator(".note").count() == 1
        heads = [head.inner_text() for head in page.locator(".team-heads .member").all()]
        assert [head.split() for head in heads] == [[f"crafter_{n}", "1", "Instructions"] for n in (0, 1)]
        page.locator(".team-heads summary").first.click()
        assert "You are crafter_0, and you craft" in page.locator(".team-heads").inner_text()
        end = page.get_by_role("article", name="End")
        assert "The goal is reached." in end.get_by_role("region", name="crafter_0").inner_text()
        assert "Success" in page.locator(".verdict").inner_text()


def test_lines_connect_sender_and_recipients(browser: Any, address: str) -> None:
    with shown(browser, address, f"#/episode/{TRIO}") as page:
        columns = page.evaluate(MIDDLES, ".turn-list article:nth-child(1) .member")
        transfer = turn(page, 1).get_by_role("listitem").first
        sender = int(transfer.locator(".route .who").first.inner_text()[-1])
        others = [column for index, column in enumerate(columns) if index != sender]
        at = ".turn-list article:nth-child(1) .transfer:first-child"
        assert page.evaluate(MIDDLES, f"{at} .start") == pytest.approx([columns[sender]], abs=2)
        assert page.evaluate(MIDDLES, f"{at} .tip") == pytest.approx(others, abs=2)
        wire = transfer.locator(".wire").bounding_box()
        assert (wire["x"], wire["x"] + wire["width"]) == pytest.approx((columns[0], columns[-1]), abs=2)
        assert transfer.locator("q").inner_text().startswith("craft ")
        gifts = page.locator(".transfer.gift").all_inner_texts()
        assert gifts and all(text.split("\n")[0].startswith("crafter_") for text in gifts)


def test_names_replace_lines_on_a_phone_or_with_many_agents(browser: Any, address: str) -> None:
    for number, options in ((WORDS, PHONE), (CROWD, {})):
        with shown(browser, address, f"#/episode/{number}", **options) as page:
            transfer = page.locator(".transfer").first
            assert not transfer.locator(".wire").is_visible() and not transfer.locator(".tip").first.is_visible()
            assert transfer.locator(".route .who").count() == (2 if number == WORDS else 6)


def test_panel_shows_inventories_of_the_turn(browser: Any, address: str) -> None:
    with shown(browser, address, f"#/episode/{WORDS}") as page:
        panel = page.get_by_role("complementary", name="State of the environment")
        inventories = [panel.get_by_role("region", name=f"crafter_{n}") for n in (0, 1)]
        inventories[1].get_by_text("crafts the goal").wait_for()
        carried = []
        for _ in range(6):
            carried.append([inventory.locator(".tc-item:not(.gone)").all_inner_texts() for inventory in inventories])
            page.keyboard.press("ArrowRight")
        text = [[[item.split("\n")[1] for item in items] for items in pair] for pair in carried]
        assert text[-3:] == [[["cobblestone"], []], [[], ["cobblestone"]], [[], ["cobblestone wall"]]]
        assert status(page) == "End of 5 turns"
        inventories[0].locator("summary").click()
        assert "craft 6 cobblestone wall using 6 cobblestone" in inventories[0].inner_text()


def test_panel_of_many_agents_is_below_the_turn(browser: Any, address: str) -> None:
    with shown(browser, address, f"#/episode/{QUARTET}?turn=2") as page:
        panel = page.get_by_role("complementary", name="State of the environment")
        panel.get_by_role("region", name="crafter_3").wait_for()
        assert panel.bounding_box()["y"] >= turn(page, 2).bounding_box()["y"]
        assert panel.bounding_box()["y"] < turn(page, 3).bounding_box()["y"]


def test_planner_and_actor_are_idle_in_turns(browser: Any, address: str) -> None:
    with shown(browser, address, f"#/episode/{ALTERNATING}") as page:
        waits = [turn(page, n).locator(".member:has(.idle) .who").inner_text() for n in (1, 2, 3)]
        assert waits == ["actor", "planner", "actor"]
        assert "get 6 cobblestone" in turn(page, 1).get_by_role("listitem").inner_text()
        page.get_by_text("What it is made of").wait_for()


def test_malformed_joint_action_is_shown_as_is(browser: Any, address: str) -> None:
    with shown(browser, address, f"#/episode/{MALFORMED}") as page:
        assert turn(page, 1).locator(".act > .body").all_inner_texts() == ["nothing in JSON"]
        assert turn(page, 1).locator(".member .seen .body").all_inner_texts() == list(SEEN.values())
        assert "Not carried out: This is no joint action." in turn(page, 1).inner_text()
        assert "This is no joint action." in turn(page, 2).locator("> .seen").inner_text()
        assert turn(page, 2).locator(".member .idle").all_inner_texts() == ["Writes nothing."]


@pytest.mark.parametrize("exported", [False, True], ids=["served", "exported"])
def test_hostile_names_and_messages_are_escaped(browser: Any, path: Path, exported: bool) -> None:
    with opened(browser, path, exported, f"#/episode/{EVIL}?turn=2") as page:
        page.get_by_role("complementary").locator(".tc-card").first.wait_for()
        plain = HOSTILE.split(" \u202e")[0]
        for selector in (
            ".team-heads .who",
            ".member .act .body",
            ".transfer .route",
            ".transfer q",
            ".transfer.gift b",
            ".tc-item",
            ".tc-card",
        ):
            assert plain in page.locator(selector).first.text_content(), selector
        assert page.locator("#main img, #main script").count() == 0 and page.title().startswith("Episode")
        assert page.locator(".transfer .odd").first.inner_text() == "RLO"


def test_tokens_are_grouped_by_agent(browser: Any, address: str, path: Path) -> None:
    recorded = [json.loads(line) for line in path.with_suffix(".tokens.jsonl").read_text("utf-8").splitlines()]
    for number, record in zip((WORDS, ALTERNATING), (recorded[0], recorded[2]), strict=True):
        with shown(browser, address, f"#/episode/{number}") as page:
            names = page.locator(".team-heads .who").all_inner_texts()
            page.get_by_role("tab", name="Tokens").click()
            page.locator(".segment").first.wait_for()
            for name, segment in zip(names, record["segments"], strict=True):
                own = page.get_by_role("region", name=name)
                assert own.locator("h3").inner_text() == name
                masks = own.locator(".tok:not(.prompt)").evaluate_all(
                    "(all) => all.map((one) => Number(one.dataset.mask))"
                )
                assert masks == segment["mask"]
            tops = [box.bounding_box()["y"] for box in page.locator(".segment").all()]
            assert tops[0] == tops[1]
            page.get_by_role("button", name="Next turn").click()
            until(page, "document.querySelector('[aria-current=step]') !== null")
            now = page.locator("[aria-current=step] .run-head b").all_inner_texts()
            assert now == (["Answer 2", "Answer 2"] if number == WORDS else ["Answer 1"])


def test_two_teams_are_compared_by_agent(browser: Any, path: Path, tmp_path: Path) -> None:
    first = json.loads(path.read_text("utf-8").splitlines()[TALK])
    other = json.loads(json.dumps(first))
    other["turns"][0]["action"] = json.dumps({**ODD, "crafter_1": "pass"})
    (tmp_path / "t.jsonl").write_text("".join(json.dumps(row) + "\n" for row in (first, other)))
    with serving(tmp_path / "t.jsonl") as address, shown(browser, address, "#/compare/0/1") as page:
        different = page.locator(".pair").nth(1).locator(".act.different > .body").all_inner_texts()
        assert different == ['say I have "nothing".', "pass"]
        assert page.locator(".act.different").count() == 2 and page.locator(".parting").count() == 1


@pytest.mark.rotating(always=1)
@pytest.mark.parametrize("where", [f"episode/{TRIO}", f"episode/{WORDS}?tab=tokens", f"compare/{WORDS}/{TALK}"])
def test_team_pages_are_accessible_and_fit_a_phone(browser: Any, address: str, where: str) -> None:
    with shown(browser, address, f"#/{where}") as page:
        page.locator(".team-heads, .segment, .pair .member").first.wait_for()
        assert not [role for role, name in roles_and_names(page) if role in NAMED and not name]
        assert page.evaluate("document.documentElement.scrollWidth") == page.viewport_size["width"]


def test_exported_team_episodes_are_searched(browser: Any, path: Path) -> None:
    with opened(browser, path, True, "#/") as page:
        ask = "(q) => Viewer.api('episodes', {q}).then(({ rows }) => rows.map((row) => row.id))"
        assert page.evaluate(ask, "says: \"i have 'nothing'.\"") == [TALK]
        assert page.evaluate(ask, 'i have "nothing"') == [TALK]
