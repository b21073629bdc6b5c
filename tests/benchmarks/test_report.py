"""The report of benchmarks: its sections, the readers of their figures, and the page that is made of them."""

import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks import peers
from benchmarks.report import runner, text, venvs
from benchmarks.report.__main__ import main
from benchmarks.report.figures import Row, figure, find
from benchmarks.report.freshness import MEASURES
from benchmarks.report.readers import scale
from benchmarks.report.render import LOADED, PAGE, README, TABLES, Report, anchor, block, missed, render
from benchmarks.report.rows import RAY
from benchmarks.report.runner import (
    RECORD,
    RunOptions,
    arguments,
    finished,
    processor,
    python_for,
    records,
    run,
    this_machine,
)
from benchmarks.report.sections import SECTIONS, Section
from benchmarks.report.venvs import ROOT, Venv, installed, lacking, required, thread_limits
from tests.children import lives
from tests.waiting import until

DOCS = ROOT / "docs"
RESULTS = ROOT / "benchmarks" / "results"
RESULT = {
    "median": {"ours": 2.0, "theirs": 6.0, "rate": 100.0, "their rate": 50.0},
    "samples": {"ours": [1.0, 2.0, 3.0], "theirs": [4.0, 6.0, 6.0]},
}


def small(path: str = "measure.py", **rest: object) -> Section:
    """A section whose script is a file of the test's own."""
    row = Row("a step", "ms", ("median", "ours"), peer=("median", "theirs"), by="theirs", target=3)
    fields = {"script": path, "rows": (row,), "file": "small.json", "repeats": False, "quick": (), **rest}
    return Section("small", "Small", "How small?", **fields)  # type: ignore[arg-type]


# -- Rows ----------------------------------------------------------------------------------------------------------


def test_a_ratio_is_computed_for_each_repeat() -> None:
    found = figure(RESULT, Row("a step", "ms", ("median", "ours"), peer=("median", "theirs"), by="theirs", target=3))
    assert found is not None
    assert (found.ours, found.peer, found.samples) == (2.0, 6.0, (1.0, 2.0, 3.0))
    assert found.speedup_samples == (4.0, 3.0, 2.0)
    assert (found.speedup, found.met) == (3.0, True)


@pytest.mark.parametrize(
    ("target", "of_ratio", "met"), [(3.0, False, True), (1.9, False, False), (3.0, True, True), (3.1, True, False)]
)
def test_targets_apply_to_the_value_or_the_ratio(target: float, of_ratio: bool, met: bool) -> None:
    row = Row("", "ms", ("median", "ours"), peer=("median", "theirs"), target=target, of_ratio=of_ratio)
    found = figure(RESULT, row)
    assert found is not None
    assert (found.speedup, found.met) == (3.0, met)


def test_rows_can_declare_that_more_is_better() -> None:
    found = figure(RESULT, Row("", "/s", ("median", "rate"), "more", ("median", "their rate"), "theirs", target=101))
    assert found is not None
    assert (found.speedup, found.met) == (2.0, False)


def test_values_are_scaled_and_ratios_are_not() -> None:
    found = figure(RESULT, Row("", "µs", ("median", "ours"), peer=("median", "theirs"), scale=1e3))
    assert found is not None
    assert (found.ours, found.samples, found.peer, found.speedup) == (2e3, (1e3, 2e3, 3e3), 6e3, 3.0)


def test_a_missing_value_gives_no_figure() -> None:
    assert figure(RESULT, Row("", "", ("median", "other"))) is None
    beside = Row("", "", ("median", "ours"), peer=("median", "other"), by="other")
    assert figure(RESULT, beside) is None
    alone = figure(RESULT, beside._replace(target=1.0))
    assert alone is not None
    assert (alone.peer, alone.speedup) == (None, None)
    assert find([{"a": [1, 2]}], (0, "a", -1)) == 2
    assert find([1], (5,)) is None


# -- Numbers and tables --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "shown"),
    [(0, "0"), (114_813.2, "114,813"), (16.57, "16.6"), (1.409, "1.41"), (0.0264, "0.026"), (0.31, "0.31")],
)
def test_numbers_have_three_digits(value: float, shown: str) -> None:
    assert text.number(value) == shown


def test_tables_leave_out_empty_columns() -> None:
    assert text.table(("a", "b", "c"), [("1", "", "3")]) == "| a | c |\n| --- | --- |\n| 1 | 3 |"


def test_a_row_shows_its_baseline_and_if_the_target_is_met() -> None:
    row = Row("a step", "ms", ("median", "ours"), peer=("median", "theirs"), by="theirs", target=1.5)
    found = figure(RESULT, row)
    assert found is not None
    cells = ("a step", "2.00 ms", "1.00 – 3.00", "6.00 ms", "theirs", "**3.00** (2.00 – 4.00)", "≤ 1.5 ms", "**no**")
    assert text.cells(found) == cells


# -- Sections ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("section", SECTIONS.values(), ids=list(SECTIONS))
def test_sections_name_scripts_rows_and_pins(section: Section) -> None:
    assert importlib.util.find_spec(section.script) is not None
    assert section.question.endswith("?")
    assert all(0 <= index < len(section.rows) for index in section.headline)
    assert all(row.by for row in section.rows if row.peer)
    described = Path(importlib.util.find_spec(section.script).origin or "").read_text(encoding="utf-8")  # type: ignore[union-attr]
    flags = [word for word in (*section.words, *section.quick, section.out, section.plot) if word.startswith("--")]
    shared = (ROOT / "benchmarks" / "common.py").read_text(encoding="utf-8")
    assert [flag for flag in flags if f'"{flag}"' not in described + shared] == []


def test_a_step_on_a_ray_host_is_compared_with_a_worker_process_and_http() -> None:
    places = {"Ray host": 6.0, "worker process": 3.0, "HTTP": 12.0}
    samples = {f"{name}, wall us": [us, us, 2 * us] for name, us in places.items()}
    steps = {"median": {name: values[0] for name, values in samples.items()}, "samples": samples}
    recorded = [found for row in RAY if (found := figure({"steps": {"1": steps, "16": steps, "256": steps}}, row))]
    assert [(found.row.by, found.speedup) for found in recorded] == [("a local worker process", 0.5), ("HTTP", 2.0)] * 3
    assert all(len(found.speedup_samples) == 3 and found.row.name.endswith("wall") for found in recorded)


@pytest.fixture(scope="module")
def report() -> Report:
    return Report(RESULTS)


@pytest.mark.parametrize("name", [name for name, one in SECTIONS.items() if (RESULTS / one.file).exists()])
def test_sections_with_figures_have_every_required_row(name: str, report: Report) -> None:
    rows = {recorded.row for recorded in report.figures(name)}
    assert [row.name for row in SECTIONS[name].rows if row not in rows and row.by not in OPTIONAL] == []


OPTIONAL = {"gymnasium", "openenv", "skyrl-gym", "textarena"}
"""Peers that cannot be installed everywhere."""


def test_the_scale_model_equals_that_of_the_planner() -> None:
    result = scale(json.loads((RESULTS / "scale.json").read_text(encoding="utf-8")))
    row = result["TextCraft, here"]
    assert row["episodes/s a core"] == pytest.approx(1_000 / row["CPU s of 1,000 episodes"])
    assert row["cores of 10,000 at a time"] == pytest.approx(10 * row["cores of 1,000 at a time"])


# -- The page ------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_page_is_rendered_from_the_figures(report: Report) -> None:
    """If not: python -m benchmarks.report --out docs --render."""
    page = PAGE.read_text(encoding="utf-8")
    assert render(page, report) == page
    readme = README.read_text(encoding="utf-8")
    assert "<!-- report:readme -->" in readme and render(readme, report) == readme


def test_the_page_has_every_section_under_its_heading_and_every_picture() -> None:
    page = PAGE.read_text(encoding="utf-8")
    headings = {anchor(line.lstrip("# ")) for line in page.splitlines() if line.startswith("#")}
    for name, section in SECTIONS.items():
        assert f"<!-- report:{name} -->" in page
        assert anchor(section.title) in headings
    assert all(f"<!-- report:{name} -->" in page for name in TABLES if name != "readme")
    pictures = [line.split("](")[1].rstrip(")") for line in page.splitlines() if line.startswith("![")]
    assert pictures
    assert [name for name in pictures if not (DOCS / name).is_file()] == []


def test_an_unknown_block_is_an_error(report: Report) -> None:
    with pytest.raises(KeyError, match="nonsense"):
        render("<!-- report:nonsense -->\n<!-- /report -->", report)


def test_an_empty_folder_reports_that_nothing_was_run(tmp_path: Path) -> None:
    report = Report(tmp_path)
    assert text.NOT_RUN in block("textcraft", report)
    assert block("lockstep-table", report) == text.NOT_RUN
    assert missed(report) == "0 of 0 targets are met."


def test_sides_that_were_not_run_are_listed_below_the_table(tmp_path: Path) -> None:
    ours = {"version": "1", "median": {"one, cpu us": 2.0}, "samples": {"one, cpu us": [2.0, 2.0]}}
    theirs = {"median": {"one, cpu us": 4.0}, "samples": {"one, cpu us": [4.0]}, "failed": ["killed"]}
    result = {
        "repeats": 2,
        "sides": {peers.OURS: ours, "gymnasium": theirs},
        "not run": {"textarena": "no such package"},
    }
    (tmp_path / SECTIONS["peers"].file).write_text(json.dumps(result), encoding="utf-8")
    shown = block("peers", Report(tmp_path))
    assert "Not run: textarena (no such package)\n" in shown
    assert "Failed in 1 of 2 repeats: gymnasium (killed)\n" in shown


def test_missed_targets_are_listed(tmp_path: Path) -> None:
    result = json.loads((RESULTS / "textcraft.json").read_text(encoding="utf-8"))
    result["median"]["steps/s"] = 99_000
    (tmp_path / "textcraft.json").write_text(json.dumps(result), encoding="utf-8")
    summary, _, *lines = missed(Report(tmp_path)).splitlines()
    assert summary == f"{6 - len(lines)} of 6 targets are met."
    assert "- TextCraft, steps per second: 99,000/s, target ≥ 100,000/s" in lines


def test_speedups_on_a_busy_machine_are_beside_the_others(tmp_path: Path) -> None:
    result = json.loads((RESULTS / "textcraft.json").read_text(encoding="utf-8"))
    (tmp_path / LOADED).mkdir()
    (tmp_path / "textcraft.json").write_text(json.dumps(result), encoding="utf-8")
    assert block("loaded", Report(tmp_path)) == text.NOT_RUN
    result["samples"]["resets/s, seed given"] = [value / 2 for value in result["samples"]["resets/s, seed given"]]
    (tmp_path / LOADED / "textcraft.json").write_text(json.dumps(result), encoding="utf-8")
    record = {"textcraft": {"machine": {"load": 5.5}}}
    (tmp_path / LOADED / RECORD).write_text(json.dumps(record), encoding="utf-8")
    [row] = [line for line in block("loaded", Report(tmp_path)).splitlines() if "resets per second" in line]
    quiet, busy = (float(cell.split("**")[1]) for cell in row.split(" | ")[3:5])
    assert busy == pytest.approx(quiet / 2, rel=0.01) and row.endswith("| 5.5 |")


# -- Running -------------------------------------------------------------------------------------------------------

SCRIPT = """
import argparse, json, os
parser = argparse.ArgumentParser()
parser.add_argument("--out")
out = parser.parse_args().out
json.dump({"median": {"ours": 1.0, "theirs": 2.0}, "threads": os.environ["OMP_NUM_THREADS"]}, open(out, "w"))
print("measured")
"""


@pytest.fixture
def script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Section:
    """A section that takes no time."""
    (tmp_path / "small_script.py").write_text(SCRIPT, encoding="utf-8")
    limits = {**thread_limits(), "PYTHONPATH": str(tmp_path)}
    monkeypatch.setattr(runner, "thread_limits", lambda: limits)
    monkeypatch.setitem(MEASURES, "small", ())
    return small("small_script")


def test_a_section_is_run_once_and_its_settings_are_recorded(script: Section, tmp_path: Path) -> None:
    options = RunOptions(tmp_path / "out", tmp_path / "cache")
    assert run(script, options) == "done"
    known = records(options.out)["small"]
    assert known["command"] == "python -m small_script"
    assert known["machine"]["cpu"]
    assert "gymnasium" in known["packages"]
    assert json.loads((options.out / script.file).read_text(encoding="utf-8"))["threads"] == "1"
    assert (tmp_path / "cache" / "logs" / "small.log").read_text(encoding="utf-8") == "measured\n"
    assert run(script, options) == "there"
    assert run(script, options._replace(again=True)) == "done"


def test_a_quick_run_does_not_count_as_finished(script: Section, tmp_path: Path) -> None:
    look = RunOptions(tmp_path / "out", tmp_path / "cache", quick=True)
    assert run(script, look) == "done"
    assert finished(script, look)
    assert not finished(script, look._replace(quick=False))


def test_figures_without_a_record_count_as_finished(tmp_path: Path) -> None:
    (tmp_path / "small.json").write_text("{}", encoding="utf-8")
    assert finished(small(), RunOptions(tmp_path))


def test_a_failing_script_is_reported_and_leaves_no_record(script: Section, tmp_path: Path) -> None:
    options = RunOptions(tmp_path / "out", tmp_path / "cache")
    (tmp_path / "small_script.py").write_text("raise SystemExit('no power')", encoding="utf-8")
    assert run(script, options).startswith("exit status 1: no power")
    assert not (options.out / RECORD).exists()


def test_arguments_follow_the_run_options(tmp_path: Path) -> None:
    assert arguments(SECTIONS["vector"], RunOptions(tmp_path, tmp_path, repeats=3)) == ["--repeats", "3"]
    assert arguments(SECTIONS["web"], RunOptions(tmp_path, tmp_path, quick=True)) == ["--quick"]
    assert arguments(SECTIONS["soak"], RunOptions(tmp_path, tmp_path, repeats=3)) == []


def test_missing_packages_are_reported() -> None:
    assert lacking(["numpy", "numpy==0.0.1", "no-such-package"]) == ["numpy==0.0.1", "no-such-package"]


def test_extras_equal_those_of_pyproject() -> None:
    assert required(["search-fast"]) == ["platformdirs", "tantivy", "bm25s", "numba"]
    assert {"msgspec", "uvicorn", "trl"} <= set(required(["serve", "trl"]))
    names = required(extra for section in SECTIONS.values() for extra in section.extras)
    assert "agentgym-envs" not in names and all(names)


def test_a_section_with_a_missing_extra_gets_an_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Venv, "ensure", lambda *_: tmp_path / "its own")
    monkeypatch.setattr(runner, "lacking", lambda names: [name for name in names if name == "trl"])
    assert python_for(SECTIONS["coop"], tmp_path) == str(tmp_path / "its own")
    assert python_for(SECTIONS["textcraft"], tmp_path) == sys.executable


def test_versions_come_from_the_python_of_the_section(tmp_path: Path) -> None:
    section = small(peers=("numpy",), bare=("no-such-package==1",))
    recorded = runner.versions(section, sys.executable, tmp_path / "none")
    assert recorded == installed(["numpy", "gymnasium"])
    result = tmp_path / "peers.json"
    result.write_text(json.dumps({"sides": {"textarena": {"version": "0.7.4"}}}), encoding="utf-8")
    assert runner.versions(SECTIONS["peers"], sys.executable, result)["textarena"] == "0.7.4"


SIDE = """
import subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
open({path!r}, "w").write(str(child.pid))
time.sleep(600)
"""


@pytest.mark.slow
def test_a_side_that_times_out_leaves_no_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pid_file = tmp_path / "pid"
    (tmp_path / "small_side.py").write_text(SIDE.format(path=str(pid_file)), encoding="utf-8")
    monkeypatch.setattr(peers, "thread_limits", lambda: {**thread_limits(), "PYTHONPATH": str(tmp_path)})

    def communicate(side: subprocess.Popen, timeout: float) -> None:
        until(lambda: pid_file.exists() and pid_file.read_text(encoding="utf-8"))  # and then its time is up
        raise subprocess.TimeoutExpired(side.args, timeout)

    monkeypatch.setattr(subprocess.Popen, "communicate", communicate)
    with pytest.raises(subprocess.TimeoutExpired):
        peers.play(sys.executable, "small_side", 1.0)
    until(lambda: not lives(int(pid_file.read_text(encoding="utf-8"))))


def test_a_side_is_missing_only_if_no_repeat_succeeded(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    there = dict.fromkeys(("gymnasium", "openenv"), "python")
    monkeypatch.setattr(peers, "pythons", lambda _: (there, {"textarena": "no such package"}))
    played: list[str] = []

    def play(python: str, module: str, seconds: float) -> dict:
        played.append(module)
        if "openenv" in module or ("gymnasium" in module and played.count(module) == 2):
            raise subprocess.CalledProcessError(1, python, stderr="much\nno power\n")
        return {"version": "1", "figures": {"one": {"cpu": 1.0}}}

    monkeypatch.setattr(peers, "play", play)
    result = peers.measure(3, 0.1, tmp_path)
    assert result["not run"] == {"textarena": "no such package", "openenv": "no power"}
    assert {name: side["failed"] for name, side in result["sides"].items()} == {
        peers.OURS: [],
        "gymnasium": ["no power"],
    }
    assert len(result["sides"]["gymnasium"]["samples"]["one, cpu us"]) == 2


def test_the_processor_is_reported_by_name_or_architecture(tmp_path: Path) -> None:
    info = tmp_path / "cpuinfo"
    info.write_text("processor\t: 0\nmodel name\t: Some Processor @ 1 GHz\n", encoding="utf-8")
    assert processor(info) == "Some Processor @ 1 GHz"
    assert processor(tmp_path / "none") in this_machine()["cpu"] or processor(tmp_path / "none")


@pytest.mark.slow
def test_the_command_lists_and_renders(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--list"]) == 0
    shown = capsys.readouterr().out
    assert all(name in shown for name in SECTIONS)
    figures = (RESULTS / "textcraft.json").read_text(encoding="utf-8")
    (tmp_path / "textcraft.json").write_text(figures, encoding="utf-8")
    assert main(["--render", "--out", str(tmp_path)]) == 0
    assert f"{text.number(json.loads(figures)['median']['steps/s'])}/s" in (tmp_path / "benchmarks.md").read_text(
        encoding="utf-8"
    )
    assert (tmp_path / "benchmarks" / "headline.png").stat().st_size > 10_000


@pytest.mark.rotating
@pytest.mark.slow
def test_an_environment_is_created_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    call = venvs._call
    monkeypatch.setattr(venvs, "_call", lambda *command: call(*command, "--without-pip"))  # which takes seconds
    venv = Venv(tmp_path / "venv")
    python = venv.ensure([])
    recorded = subprocess.run(
        [python, "-c", "import sys; print(sys.prefix)"], capture_output=True, text=True, check=True
    )
    assert recorded.stdout.strip() == str(tmp_path / "venv")
    changed = python.stat().st_mtime_ns
    assert venv.ensure([]).stat().st_mtime_ns == changed
    assert str(python) != sys.executable
