"""Task files, sites, readiness and the building of evaluators; no browser."""

import json
import os
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from agentgym_envs.chat_judge import BASE_URL, MODEL
from agentgym_envs.errors import MissingExtra, TaskTableError, UnknownTask, UsageError
from agentgym_envs.task import TaskTable
from agentgym_envs.webarena.browser.sites import LocalSites
from agentgym_envs.webarena.official import tasks as official
from agentgym_envs.webarena.official.readiness import check
from agentgym_envs.webarena.official.scoring import evaluators_of
from agentgym_envs.webarena.official.sites import SITES, SiteAddresses, variables
from agentgym_envs.webarena.official.tasks import (
    GROUPS,
    VARIABLE,
    WebArenaTasks,
    find_tasks,
    is_unsolvable,
    needed_sites,
    needs_judge,
    open_tasks,
    read_tasks,
    split_of,
)
from tests.webarena.stub_sites import Stubs

DATA = Path(__file__).parent / "data"
ORIGINAL, VERIFIED = DATA / "official_tasks.json", DATA / "official_verified.json"


@pytest.fixture(autouse=True)
def no_sites(monkeypatch: pytest.MonkeyPatch) -> None:
    for site in SITES:
        for name in variables(site):
            monkeypatch.delenv(name, raising=False)


@pytest.fixture(scope="module")
def table() -> TaskTable:
    return read_tasks(ORIGINAL)


def row(**changes: Any) -> dict[str, Any]:
    return {**json.loads(ORIGINAL.read_text(encoding="utf-8"))[0], **changes}


def written(path: Path, *rows: Any) -> Path:
    path.write_text(json.dumps(list(rows)), encoding="utf-8")
    return path


def test_a_task_of_the_original_format_is_read(table: TaskTable) -> None:
    task = table.get("webarena/7")
    assert (table.name, task.group, task.split) == ("webarena", "gitlab-reddit", "train")
    assert task.goal == "Post the address of the project dotfiles in the forum for books."
    assert task.data["sites"] == ["gitlab", "reddit"] and task.data["start_urls"] == ["__REDDIT__"]
    assert json.loads(json.dumps(dict(task.data))) == dict(task.data)
    both = table.get("webarena/10").data["start_urls"]
    assert both == ["__SHOPPING__/energy-drink.html", "__SHOPPING__/tea.html"]


def test_both_formats_have_the_same_ids_groups_and_splits(table: TaskTable) -> None:
    verified = read_tasks(VERIFIED)
    assert verified.name == "webarena-verified" and verified.digest != table.digest
    for number in (0, 12):
        one, other = table.get(f"webarena/{number}"), verified.get(f"webarena/{number}")
        assert (one.group, one.split, one.data["sites"]) == (other.group, other.split, other.data["sites"])


def test_the_first_page_decides_the_group(table: TaskTable) -> None:
    groups = {number: table.get(f"webarena/{number}").group for number in (0, 5, 6, 12, 15)}
    assert groups == {0: "shopping", 5: "gitlab-reddit", 6: "gitlab-reddit", 12: "maps", 15: "cms"}


def test_tasks_of_one_template_share_a_split() -> None:
    counts = Counter(split_of(template) for template in range(10_000))
    assert counts["train"] == pytest.approx(6000, rel=0.05) and counts["test"] == pytest.approx(3000, rel=0.05)
    assert [split_of(template) for template in (1, 4, 10)] == ["train", "test", "validation"]  # these must never change


def test_only_playable_tasks_are_sampled_and_counted(table: TaskTable) -> None:
    def only(*numbers: int) -> WebArenaTasks:
        played = {f"webarena/{number}" for number in numbers}
        return WebArenaTasks(table, {task.id: "needs a map" for task in table if task.id not in played})

    tasks = only(0, 2)
    assert {tasks.draw(key, split=None).id for key in range(9)} == {"webarena/0", "webarena/2"}
    assert [task.id for task in tasks.sample(split="test")] == ["webarena/2"]
    assert tasks.counts()["shopping"] == {"train": 1, "validation": 0, "test": 1}
    assert tasks.groups == ("shopping",)
    assert only(11, 6, 2, 14).groups == GROUPS
    assert tasks.get("webarena/8").group == "shopping" and len(tasks) == 16
    with pytest.raises(UsageError, match=r"no task of group 'maps' .*; 'webarena/11', for example, needs a map"):
        tasks.draw(0, split="train", groups=("maps",))
    with pytest.raises(UsageError, match="no task of split 'test' and group 'shopping' can be played"):
        only(0).draw(0, split="test", groups=("shopping",))
    with pytest.raises(UnknownTask, match="no group"):
        tasks.draw(0, groups=("golf",))


@pytest.mark.parametrize(
    ("changes", "what"),
    [
        ({"start_url": "http://example.com/"}, "outside of the sites"),
        ({"start_url": "__HOMEPAGE__"}, "KeyError"),
        ({"intent_template_id": None}, "TypeError"),
        ({"eval": {}}, "names no evaluators"),
        ({"eval": []}, "IndexError"),
        ({"sites": None}, "TypeError"),
    ],
)
def test_a_malformed_task_is_reported_with_its_number(tmp_path: Path, changes: dict[str, Any], what: str) -> None:
    with pytest.raises(TaskTableError, match=f"task 1 .*{what}"):
        read_tasks(written(tmp_path / "tasks.json", row(), row(**changes)))


def test_malformed_task_files_are_refused(tmp_path: Path) -> None:
    (tmp_path / "not.json").write_text("{", encoding="utf-8")
    with pytest.raises(TaskTableError, match="is not JSON"):
        open_tasks(tmp_path / "not.json")
    (tmp_path / "object.json").write_text("{}", encoding="utf-8")
    with pytest.raises(TaskTableError, match="not a list"):
        open_tasks(tmp_path / "object.json")
    with pytest.raises(TaskTableError, match=r"empty\.json contains no playable tasks: .* is empty"):
        open_tasks(written(tmp_path / "empty.json"))
    with pytest.raises(TaskTableError, match=r"twice\.json .* uses an id more than once"):
        open_tasks(written(tmp_path / "twice.json", row(), row()))
    with pytest.raises(UsageError, match="cannot be read"):
        open_tasks(tmp_path / "none.json")
    with pytest.raises(UsageError, match="'original' or 'verified'"):
        open_tasks(7)  # type: ignore[arg-type]


def test_the_file_comes_from_an_argument_a_variable_or_a_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "a_package_with_tasks"
    package.mkdir()
    (package / "__init__.py").write_text("raise SystemExit('imported')", encoding="utf-8")
    written(package / "test.raw.json", row(task_id=77))
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delenv(VARIABLE, raising=False)
    monkeypatch.setitem(official.SOURCES, "original", (("a_package_with_tasks", "test.raw.json"),))
    assert [task.id for task in open_tasks()] == ["webarena/77"]
    monkeypatch.setenv(VARIABLE, str(VERIFIED))
    assert open_tasks().name == "webarena-verified"
    assert open_tasks("original").tasks[0].id == "webarena/77"
    assert open_tasks(ORIGINAL).name == "webarena"
    monkeypatch.setitem(official.SOURCES, "original", (("a_package_that_is_not_there", "test.raw.json"),))
    with pytest.raises(MissingExtra, match=f"{VARIABLE}.*webarena-verified"):
        open_tasks("original")


def test_addresses_come_from_either_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHOPPING", "http://old.test:1/")
    monkeypatch.setenv("WA_SHOPPING", "http://new.test:2/")
    monkeypatch.setenv("GITLAB", "https://gitlab.test")
    sites = SiteAddresses.of()
    assert sites.urls == {"shopping": "http://new.test:2", "gitlab": "https://gitlab.test"}
    assert SiteAddresses.of({"map": "http://map.test"}).urls == {"map": "http://map.test"}
    assert sites.missing(["gitlab", "map", "reddit"]) == ("map", "reddit")
    monkeypatch.setenv("MAP", "yes")
    with pytest.raises(UsageError, match=r"MAP must be an address.*'yes'"):
        SiteAddresses.of()
    more = ("http://u:p@x.test", "http://x.test/?a=b", "http://x.test/#c")
    for wrong in ({"shop": "http://x.test"}, {"shopping": "x.test"}, "http://x.test", *({"map": url} for url in more)):
        with pytest.raises(UsageError):
            SiteAddresses.of(wrong)  # type: ignore[arg-type]


def test_placeholders_are_filled_at_any_depth() -> None:
    sites = SiteAddresses.of({"shopping": "http://shop.test", "shopping_admin": "http://shop.test/admin/"})
    given = {"a": ["__SHOPPING_ADMIN__/x", 3, None], "b": "__SHOPPING__/y |OR| __GITLAB__ __page__"}
    assert sites.fill(given) == {
        "a": ["http://shop.test/admin/x", 3, None],
        "b": "http://shop.test/y |OR| __GITLAB__ __page__",
    }


def test_tasks_need_sites_and_a_judge(table: TaskTable) -> None:
    assert needed_sites(table.get("webarena/12")) == ["map", "wikipedia"]
    assert needed_sites(table.get("webarena/7")) == ["gitlab", "reddit"]
    assert [task.id for task in table if needs_judge(task)] == ["webarena/8", "webarena/9"]
    assert not any(map(needs_judge, read_tasks(VERIFIED)))


def test_every_task_gets_its_evaluators(table: TaskTable) -> None:
    sites = SiteAddresses.of({"gitlab": "http://gitlab.test"})
    kinds = {task.id[9:]: [type(e).__name__ for e in evaluators_of(task, sites)] for task in table}
    assert kinds["0"] == ["ExactAnswer"] and kinds["1"] == ["AnswerIncludes"] and kinds["2"] == ["EndsOn"]
    assert kinds["3"] == ["PageHolds", "PageHolds"] and kinds["5"] == ["EndsOn", "PageHolds"]
    assert kinds["8"] == ["MeansTheSame"] and kinds["9"] == ["CannotBeDone"]
    [holds] = evaluators_of(table.get("webarena/6"), sites)
    assert holds.url == "http://gitlab.test/byteblaze/dotfiles/-/project_members"  # type: ignore[attr-defined]
    [holds] = evaluators_of(table.get("webarena/14"), sites)
    assert holds.before == ("document.querySelector('.toggle').click()",)  # type: ignore[attr-defined]
    assert [type(e).__name__ for e in evaluators_of(read_tasks(VERIFIED).tasks[0], sites)] == ["Verified"]


@pytest.mark.parametrize(
    "config",
    [
        {"eval_types": ["smell_match"]},
        {"eval_types": ["string_match"], "reference_answers": None},
        {"eval_types": ["string_match"], "reference_answers": {"rhymes_with": "x"}},
        {"eval_types": ["url_match"], "reference_url": "__SHOPPING__", "url_note": "EXACT"},
        {"eval_types": ["program_html"], "program_html": [{"url": "last", "locator": "", "required_contents": {}}]},
        {
            "eval_types": ["program_html"],
            "program_html": [
                {"url": "func:exec('1')", "locator": "", "required_contents": {"exact_match": "x"}},
            ],
        },
    ],
)
def test_unknown_scoring_rules_are_found_before_an_episode(tmp_path: Path, config: dict[str, Any]) -> None:
    [task] = read_tasks(written(tmp_path / "tasks.json", row(eval=config))).tasks
    with pytest.raises(TaskTableError, match="'webarena/0' cannot be scored"):
        evaluators_of(task, SiteAddresses())


def test_readiness_counts_the_tasks_without_a_site(table: TaskTable) -> None:
    stubs = Stubs()
    stubs.forum.broken = 503
    empty = LocalSites()
    sites = SiteAddresses.of(
        {**stubs.urls, "shopping_admin": f"http://{empty.address}", "wikipedia": "http://127.0.0.1:1"}
    )
    found = check(table, sites, judge=True)
    states = {state.site: (state.problem, state.tasks) for state in found.sites}
    assert states == {
        "shopping": ("", 8),
        "shopping_admin": ("answers with status 404", 2),
        "reddit": ("answers with status 503", 2),
        "gitlab": ("", 3),
        "map": ("set WA_MAP or MAP", 2),
        "wikipedia": ("does not answer (ConnectError)", 1),
    }
    groups = {group.group: (group.ready, group.tasks, group.missing) for group in found.groups}
    assert groups == {
        "shopping": (8, 8, ()),
        "cms": (0, 2, ("shopping_admin",)),
        "maps": (0, 2, ("map", "wikipedia")),
        "gitlab-reddit": (2, 4, ("reddit",)),
    }
    assert not found.ready and found.judge_tasks == 2
    lines = str(found).splitlines()
    assert lines[-1] == "A judge is set; 2 of the tasks need it."
    assert lines[0].split() == ["site", "tasks", "address", "state"]
    assert lines[5].split(maxsplit=3) == ["map", "2", "-", "set WA_MAP or MAP"]
    assert "maps           0      2   map, wikipedia" in lines


def test_tasks_without_a_judge_are_not_ready(table: TaskTable, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(BASE_URL, raising=False)
    monkeypatch.delenv(MODEL, raising=False)
    shopping = [task for task in table if task.data["needs"] == ["shopping"]]
    sites = SiteAddresses.of({"shopping": Stubs().urls["shopping"]})
    found = check(shopping, sites)
    assert found.groups == (("shopping", len(shopping) - 2, len(shopping), ("a judge",)),) and not found.ready
    assert str(found).endswith(f"No judge is set; 2 of the tasks need one: set {BASE_URL} and {MODEL}.")
    monkeypatch.setenv(BASE_URL, "http://127.0.0.1:1/v1")
    monkeypatch.setenv(MODEL, "m")
    assert check(shopping, sites).ready


def test_unsolvable_tasks_are_counted_separately(tmp_path: Path, table: TaskTable) -> None:
    rows = json.loads(VERIFIED.read_text(encoding="utf-8"))
    verified = read_tasks(written(tmp_path / "tasks.json", *({**rows[0], "task_id": number} for number in (1, 319))))
    assert [task.id for task in verified if is_unsolvable(task)] == ["webarena/319"]
    found = check(verified, SiteAddresses.of({"shopping": Stubs().urls["shopping"]}))
    assert found.groups == (("shopping", 1, 1, ()),) and found.ready and found.sites[0].tasks == 1
    assert str(found).endswith("Tasks that always score 0, and are not sampled: 1.")
    assert not any(map(is_unsolvable, table))


def test_a_site_with_another_public_address_is_reported(table: TaskTable) -> None:
    stubs = Stubs()
    stubs.shop.public_url = "http://shop.example.com/"
    shop = check(table, SiteAddresses.of(stubs.urls)).sites[0]
    assert shop.problem.startswith("redirects to http://shop.example.com/, which is not one of the sites")


def real_file(source: str) -> Path:
    """WebArena's own file, if its package is installed or the environment variable names it."""
    named = os.environ.get(VARIABLE, "")
    path = Path(named).with_name(Path(official.SOURCES[source][0][1]).name) if named else None
    try:
        return path if path is not None and path.is_file() else find_tasks(source)
    except MissingExtra:
        pytest.skip(f"needs WebArena's task file: install webarena-verified or set {VARIABLE}")


def test_all_812_original_tasks_can_be_read_and_scored(monkeypatch: pytest.MonkeyPatch) -> None:
    table = read_tasks(real_file("original"))
    assert {task.id for task in table} == {f"webarena/{number}" for number in range(812)}
    counts = {group: sum(of.values()) for group, of in table.counts().items()}
    assert counts == {"shopping": 192, "cms": 182, "maps": 128, "gitlab-reddit": 310}
    assert Counter(task.split for task in table) == {"train": 482, "validation": 104, "test": 226}
    sites = SiteAddresses.of({site: f"http://{site.replace('_', '-')}.test" for site in SITES})
    found = Counter(type(e).__name__ for task in table for e in evaluators_of(task, sites))
    assert found == {
        "PageHolds": 651,
        "EndsOn": 205,
        "AnswerIncludes": 176,
        "MeansTheSame": 82,
        "ExactAnswer": 45,
        "CannotBeDone": 36,
    }
    assert sum(map(needs_judge, table)) == 118
    assert all("__" not in repr(sites.fill(task.data["start_urls"])) for task in table)


def test_both_published_files_have_the_same_splits() -> None:
    original, verified = read_tasks(real_file("original")), read_tasks(real_file("verified"))
    assert len(verified) == 812
    for one, other in zip(original, verified, strict=True):
        assert (one.id, one.group, one.split) == (other.id, other.group, other.split)
        assert set(needed_sites(one)) == set(needed_sites(other))
