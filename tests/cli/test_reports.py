"""The reports of a run: all formats agree with `evaluate`, and no text of an episode is interpreted."""

import csv
import io
import json
import math
import random
import re
import xml.etree.ElementTree as ET
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import gymnasium as gym
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from agentgym_envs.cli.reports import (
    make_report,
    plots,
    print_agentgym_rl_table,
    print_report,
    to_csv,
    to_html,
    to_markdown,
)
from agentgym_envs.cli.reports.contents import EvalReport
from agentgym_envs.cli.reports.markup import el, visible
from agentgym_envs.core import text_env
from agentgym_envs.evaluate import AGENTGYM_RL_TABLE, evaluate
from agentgym_envs.task import Task
from agentgym_envs.trajectory import Trajectory, TrajectoryWriter, Turn

from .conftest import Run

HOSTILE = (
    "</style><script>alert(1)</script> | `x` **b** [a](http://evil) <img src=x onerror=alert(1)>\u202eevil\x00\ud800"
)


def episode(
    env_id: str = "Toy/A-v0",
    task: str = "a/1",
    group: str = "easy",
    score: float = 1.0,
    *,
    seed: int = 0,
    turns: int = 3,
    stop: str | None = None,
    goal: str = "do it",
    tokens: int | None = None,
) -> Trajectory:
    success = score == 1.0
    info = {} if tokens is None else {"tokens": tokens}
    return Trajectory(
        env_id,
        Task(task, "test", group, goal),
        seed,
        "",
        tuple(Turn("o", "a", 0.0, info) for _ in range(turns)),
        "end",
        score,
        success,
        stop or ("success" if success else "turn_limit"),
        error="it broke" if stop == "env_error" else None,
        meta={"policy": "bot"},
    )


def many(envs: int = 2, tasks: int = 12, episodes: int = 3) -> list[Trajectory]:
    rng = random.Random(5)
    return [
        episode(
            f"Toy/{chr(65 + env)}-v0",
            f"t/{task}",
            f"group-{task % 3}",
            rng.choice([0.0, 0.25, 1.0, 1.0]),
            seed=seed,
            turns=rng.randint(1, 40),
            tokens=rng.randint(1, 99),
        )
        for env in range(envs)
        for task in range(tasks)
        for seed in range(episodes)
    ]


class Page(HTMLParser):
    """A parser that checks the nesting of the tags and collects tags, cells and text."""

    VOID = frozenset({"meta", "br", "hr", "col"})

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.cells: list[list[str]] = []
        self.text = ""
        self.feed(text)
        self.close()
        assert not self.open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in self.VOID:
            self.open.append(tag)
        if tag == "tr":
            self.cells.append([])
        if tag in ("td", "th"):
            self.cells[-1].append("")

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data
        if self.cells and {"td", "th"} & set(self.open):
            self.cells[-1][-1] += data


def test_the_page_shows_the_metrics() -> None:
    report = make_report(many())
    page = Page(to_html(report))
    rows = {row[0]: row[1:] for row in page.cells if row}
    success = report.evaluation.overall.success
    assert success is not None
    wanted = f"{100 * success.mean:.1f}%  [{100 * success.low:.1f}, {100 * success.high:.1f}]"
    assert rows["all"][:3] == ["24", "72", wanted]
    assert "pass@3" in page.text
    assert "pass^3" in page.text
    assert {row[0] for row in page.cells if row} >= {"group-0", "group-1", "group-2", "Toy/A-v0", "Toy/B-v0"}


def test_the_page_loads_nothing_and_runs_nothing() -> None:
    text = to_html(make_report(many()))
    page = Page(text)
    assert not {tag for tag, _ in page.tags} & {"script", "link", "img", "iframe", "object", "form", "a", "base"}
    names = {name for _, attributes in page.tags for name in attributes}
    assert not {name for name in names if name.startswith("on") or name in ("src", "href", "style")}
    assert not re.search(r"url\(|@import", text)
    [policy] = [a["content"] for tag, a in page.tags if a.get("http-equiv") == "Content-Security-Policy"]
    assert policy is not None
    assert policy.startswith("default-src 'none'; style-src 'sha256-")


def test_the_page_is_accessible() -> None:
    page = Page(to_html(make_report(many())))
    ids = [a["id"] for _, a in page.tags if "id" in a]
    assert len(ids) == len(set(ids))
    drawn = [a for tag, a in page.tags if tag == "svg"]
    assert len(drawn) >= 6
    for attributes in drawn:
        assert attributes["role"] == "img"
        assert set((attributes["aria-labelledby"] or "").split()) <= set(ids)
    assert all(a.get("scope") for tag, a in page.tags if tag == "th")
    assert [a["lang"] for tag, a in page.tags if tag == "html"] == ["en"]


def hostile() -> EvalReport:
    failed = episode(task="b", stop="env_error", goal=HOSTILE)
    found = [episode(f"Toy/{HOSTILE}", HOSTILE, HOSTILE, 0.0, goal=HOSTILE), episode(), failed]
    return make_report(found, result={"settings": {"policy": HOSTILE, "split": HOSTILE}})


def test_hostile_text_is_escaped() -> None:
    text = to_html(hostile())
    page = Page(text)
    assert not {tag for tag, _ in page.tags} & {"script", "img", "a"}
    assert "alert(1)" in page.text
    assert "[U+202E]evil[U+0000][U+D800]" in page.text
    text.encode("utf-8")  # contains no lone surrogate
    written = to_markdown(hostile())
    assert "<script" not in written
    assert "<img" not in written
    assert "\u202e" not in written
    cells = {line.replace(r"\|", "").count("|") for line in written.splitlines() if line.startswith("| ")}
    assert len(cells) == 2  # results and settings: no text opens another cell


def test_spreadsheets_do_not_evaluate_text_as_a_formula() -> None:
    report = make_report([episode("=cmd()", "t", "@x")])
    rows = list(csv.DictReader(io.StringIO(to_csv(report))))
    assert {row["env_id"] for row in rows} == {"'=cmd()"}
    assert {row["group"] for row in rows} == {"", "'@x"}


def test_csv_and_json_have_the_same_values() -> None:
    report = make_report([*many(), episode(task="z", stop="env_error")])
    rows = list(csv.DictReader(io.StringIO(to_csv(report))))
    overall = {row["metric"]: row for row in rows if row["level"] == "overall"}
    wanted = report.evaluation.overall.to_json()
    assert float(overall["success"]["low"]) == wanted["success"]["low"]
    assert float(overall["pass^3"]["value"]) == wanted["pass_hat_k"]["3"]["mean"]
    assert float(overall["turns"]["value"]) == pytest.approx(wanted["turns"])
    assert int(overall["excluded"]["value"]) == 1
    assert int(overall["stop:env_error"]["value"]) == 1
    assert float(overall["agentgym-rl:pass@n"]["value"]) == wanted["agentgym_rl"]["pass@n"]
    keys = [(row["level"], row["env_id"], row["group"], row["metric"]) for row in rows]
    assert len(keys) == len(set(keys))


def test_markdown_tables_have_rows_of_equal_width() -> None:
    lines = to_markdown(make_report(many(), agentgym_rl=True)).splitlines()
    blocks: list[list[str]] = [[]]
    for line in lines:
        if line.startswith("|"):
            blocks[-1].append(line)
        elif blocks[-1]:
            blocks.append([])
    tables = [block for block in blocks if block]
    assert len(tables) == 2
    for table in tables:
        assert len({line.replace(r"\|", "").count("|") for line in table}) == 1


@pytest.mark.parametrize("width", [80, 100, 140])
def test_the_tables_fit_the_terminal(width: int) -> None:
    def lines(print_it: object, *given: object) -> list[str]:
        out = io.StringIO()
        print_it(Console(file=out, width=width, highlight=False), *given)  # type: ignore[operator]
        return out.getvalue().splitlines()

    found = [
        episode("Toy/A-v0", f"t{i}", "a-group-of-a-very-long-name", i % 3 / 2, seed=s) for i in range(9) for s in (0, 1)
    ]
    report = make_report([*many(), *found], agentgym_rl=True)
    shown = lines(print_report, report)
    assert max(map(len, shown)) <= width
    assert not [line for line in shown if "…" in line]  # no number is truncated
    heads = [line.split() for line in shown if "success" in line and "95%" in line]
    assert heads[0][-1] == "invalid"
    assert ("tokens" in heads[0]) == (width > 80)
    assert ("score  [95% CI]" in "\n".join(shown)) == (width == 140)
    alone = lines(print_report, make_report(found[:1] * 5))
    assert alone[1].split()[-1] == "invalid"
    assert max(map(len, alone)) <= width
    assert report.agentgym_rl_table is not None
    table = lines(print_agentgym_rl_table, report.agentgym_rl_table)
    assert max(map(len, table)) <= width
    assert not [line for line in table if "…" in line]
    names = {line.strip().partition("  ")[0].rstrip("†") for line in table}
    assert names >= {row.name for scenario in AGENTGYM_RL_TABLE for row in scenario.rows}
    [above] = [line for line in table if line.strip() == "reported by the paper"]
    assert table.index(above) == 1
    assert len(above) <= max(map(len, table))


def test_columns_are_dropped_before_names_are_wrapped() -> None:
    name, envs = "go-to-a-red-ball", ("AgentGym/SciWorld-v0", "AgentGym/TextCraft-v0")
    found = [episode(env, f"t{i}", name, i / 9, tokens=9) for i in range(9) for env in envs]

    def shown(width: int) -> str:
        out = io.StringIO()
        print_report(Console(file=out, width=width, highlight=False), make_report(found))
        return out.getvalue()

    for width in (80, 120):
        assert name in shown(width)
        assert "SciWorld " in shown(width)
        assert "AgentGym/" not in shown(width)
    assert "episodes " in shown(120).partition("ended by")[0]
    assert "episodes " not in shown(80).partition("ended by")[0]


def test_environments_with_the_same_name_are_shown_with_full_ids() -> None:
    out = io.StringIO()
    print_report(Console(file=out, width=100), make_report([episode("My/A-v0"), episode("Toy/A-v0")]))
    assert "My/A-v0" in out.getvalue()


def test_the_27_tasks_are_shown_for_several_scenarios_or_on_request() -> None:
    textcraft = [episode("AgentGym/TextCraft-v0", "t/1", "depth-1")]
    babyai = [episode("AgentGym/BabyAI-v0", "b/1", "GoTo")]
    assert make_report(textcraft).agentgym_rl_table is None
    assert make_report(textcraft, agentgym_rl=True).agentgym_rl_table is not None
    assert make_report(many()).agentgym_rl_table is None
    both = make_report([*textcraft, *babyai])
    assert both.agentgym_rl_table is not None
    page = Page(to_html(both))
    assert "reported in the paper" in page.text
    assert "ScalingInter-7B" in to_markdown(both)
    assert (
        sum(row[0].rstrip("†") in {r.name for s in AGENTGYM_RL_TABLE for r in s.rows} for row in page.cells if row)
        >= 27
    )


def test_a_report_without_usable_episodes_shows_dashes() -> None:
    for found in ([episode(stop="env_error")], [episode(turns=0, score=0.0, stop="token_limit")]):
        report = make_report(found)
        assert "–" in Page(to_html(report)).text
        assert "–" in to_markdown(report)
        to_csv(report)


@pytest.mark.slow
@given(st.text())
def test_text_survives_markup_except_for_hidden_characters(text: str) -> None:
    written = el("p", text, title=text)
    parsed = Page(written)
    assert parsed.text == visible(text)
    assert (parsed.tags[0][1]["title"] or "") == visible(text)
    assert not re.search("[\x00-\x08\u202a-\u202e\u2066-\u2069\ud800-\udfff]", written)


SHARES = st.floats(0, 1)


@given(st.lists(st.tuples(st.text(max_size=40), SHARES, SHARES, SHARES), min_size=1, max_size=40))
def test_intervals_stay_inside_the_plot(rows: list[tuple[str, float, float, float]]) -> None:
    ordered = [plots.IntervalRow(label, sorted(values)[1], min(values), max(values)) for label, *values in rows]
    assert_inside(plots.intervals("x", "title", ordered))


@given(st.lists(st.tuples(st.integers(0, 10**7), st.integers(0, 10**7)), min_size=1, max_size=60))
def test_bars_stay_inside_the_plot(bins: list[tuple[int, int]]) -> None:
    assert_inside(plots.histogram("x", "t", "turns", [plots.Bin("1", a, b, "1") for a, b in bins]))
    assert_inside(plots.counts("x", "t", [("reason", a) for a, _ in bins]))


@given(
    st.integers(0, 10**6), st.lists(st.tuples(st.integers(1, 10**4), SHARES), min_size=1, max_size=40), st.booleans()
)
def test_curves_stay_inside_the_plot(first: int, moves: list[tuple[int, float]], steps: bool) -> None:
    points, x = [], first
    for move, share in moves:
        x += move
        points.append(plots.Point(x, share, share, share))
    lines = [plots.Curve("a", points), plots.Curve("b", points[:1])]
    assert_inside(plots.curves("x", "t", "turns", lines, steps=steps))


def test_bands_are_drawn_for_few_curves() -> None:
    for count, bands in ((1, 1), (2, 2), (3, 0)):
        drawn = plots.curves("x", "t", "turns", [plots.Curve("a", [plots.Point(1, 0.5, 0, 1)])] * count, steps=True)
        assert drawn.count("<polygon") == bands


def test_the_page_notes_that_its_turns_are_of_the_last_attempt() -> None:
    once = episode()
    again = replace(once, meta={"policy": "bot", "agent": {"name": "reflect", "attempts": 2}, "attempts": [{}]})
    assert "(last attempt)" not in to_html(make_report([once] * 2))
    assert to_html(make_report([once, again])).count("(last attempt)") == 2


def assert_inside(svg: str) -> None:
    root = ET.fromstring(svg)
    wide, high = map(float, root.attrib["viewBox"].split()[2:])
    for node in root.iter():
        for names, most in ((("x", "x1", "x2", "cx"), wide), (("y", "y1", "y2", "cy"), high)):
            for name in names:
                value = float(node.attrib.get(name, 0))
                assert math.isfinite(value)
                assert 0 <= value <= most + 0.01
        if node.tag.endswith("rect"):
            assert float(node.attrib["x"]) + float(node.attrib["width"]) <= wide + 1
            assert float(node.attrib["y"]) + float(node.attrib["height"]) <= high
        for pair in node.attrib.get("points", "").split():
            x, y = map(float, pair.split(","))
            assert 0 <= x <= wide
            assert 0 <= y <= high


def test_report_writes_the_same_files_as_eval(run: Run) -> None:
    words = ("eval", "textcraft", "--policy", "random", "--tasks", 12, "-k", 2, "--max-turns", 4, "--out", "out")
    shown = run(*words).out
    files = {name: Path("out", name).read_bytes() for name in ("report.html", "report.md", "metrics.csv")}
    for name in files:
        Path("out", name).unlink()
    again = run("report", "out")
    assert again.code == 0
    assert shown.startswith(again.out)  # eval also prints the location of the files
    assert {name: Path("out", name).read_bytes() for name in files} == files
    found = run("report", "out", "--json").json
    assert found["metrics"] == json.loads(Path("out/eval.json").read_text())["metrics"]
    assert found["settings"]["policy"] == "random"


def test_report_of_files_writes_only_requested_files(run: Run) -> None:
    found = many(envs=1)
    for name, part in (("a.jsonl", found[:20]), ("b.jsonl", found[20:])):
        with TrajectoryWriter(name) as writer:
            for one in part:
                writer.write(one)
    outcome = run("report", "a.jsonl", "b.jsonl", "--html", "x.html", "--csv", "x.csv", "--markdown", "x.md", "--json")
    assert outcome.json["metrics"] == json.loads(json.dumps(evaluate(found).to_json()))
    assert sorted(path.name for path in Path().iterdir()) == ["a.jsonl", "b.jsonl", "x.csv", "x.html", "x.md"]
    assert Path("x.csv").read_text() == to_csv(make_report(found))
    assert "all" in run("report", "a.jsonl", "--agentgym-rl").out
    assert len(list(Path().iterdir())) == 5


@pytest.mark.slow
def test_invalid_reports_are_refused(run: Run, refuses: Run, tmp_path: Path) -> None:
    (tmp_path / "empty.jsonl").touch()
    (tmp_path / "folder").mkdir()
    assert "not a file" in refuses("report", "nowhere").err
    assert "not a file" in refuses("report", "folder").err
    for name in "dabc":
        (tmp_path / "folder" / name).mkdir()
        (tmp_path / "folder" / name / "trajectories.jsonl").touch()
    assert "folders of runs: folder/a, folder/b, folder/c … 4 in all" in refuses("report", "folder").err
    assert "no episode" in refuses("report", "empty.jsonl").err
    assert "compare" in refuses("report", "folder", "empty.jsonl").err
    assert run("eval", "textcraft", "--policy", "oracle", "--tasks", 2, "--out", "out").code == 0
    (tmp_path / "out/eval.json").write_text("{")
    assert "cannot be read" in refuses("report", "out").err
    for wrong in ("[]", '{"settings": []}', '{"retried": "often"}', '{"group_order": null}'):
        (tmp_path / "out/eval.json").write_text(wrong)
        assert "was not written by eval" in refuses("report", "out").err
    (tmp_path / "out/eval.json").unlink()
    assert run("report", "out").code == 0


def test_rows_by_difficulty_are_bands_of_the_oracles_turns(run: Run, tmp_path: Path) -> None:
    """Of real tasks; an environment without a measure has a row of its own."""
    tasks: Any = text_env(gym.make("AgentGym/TextCraft-v0")).tasks
    bands = {2: "1-2 turns", 3: "3-4 turns", 8: "5-8 turns", 9: "9-16 turns", 17: "17-32 turns", 36: "33 turns or more"}
    first = [next(task for task in tasks if tasks.difficulty(task).turns == turns) for turns in bands]
    episodes = [replace(episode("AgentGym/TextCraft-v0"), task=task) for task in first]
    record = tmp_path / "episodes.jsonl"
    with TrajectoryWriter(record) as writer:
        for each in episodes:
            writer.write(each)
    found = run("report", record, "--by", "difficulty", "--json").json["metrics"]
    assert [row["group"] for row in found["groups"]] == list(bands.values())
    grouped = run("report", record, "--json").json["metrics"]
    assert {row["group"] for row in grouped["groups"]} == {task.group for task in first}
    unknown = [episode("AgentGym/MiniWoB-v0", "miniwob/click-button/0", "click")]
    assert make_report(unknown, by="difficulty").evaluation.groups[0].group == "unknown difficulty"
