"""The mapping from WebArena's intents to our templates is complete and documented."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from pathlib import Path

from agentgym_envs.webarena.tasks.coverage import SITES, coverage_table, intents
from agentgym_envs.webarena.tasks.table import templates

ROOT = Path(__file__).parents[2]
TASKS, NUMBERS = 812, 190


def test_every_intent_is_mapped_once_to_existing_templates() -> None:
    assert len({one.number for one in intents()}) == len(intents()) == NUMBERS
    assert sum(one.tasks for one in intents()) == TASKS
    for one in intents():
        assert set(one.templates) <= templates().keys(), one.number
        assert one.site in SITES and one.start in ("", "page", "tabs"), one.number
        assert bool(one.templates) == (one.verdict != "no"), one.number
        assert bool(one.reason) == (one.verdict != "yes"), one.number


def test_version_2_covers_most_of_webarena() -> None:
    covered = {version: sum(one.tasks for one in intents() if one.covered(version)) for version in (1, 2)}
    assert covered[2] >= 0.85 * TASKS
    assert covered[1] < covered[2]


def test_the_mapping_agrees_with_webarenas_tasks() -> None:
    """Compares with webarena-verified where it is installed; the numbers above hold everywhere."""
    for path in ROOT.glob(".venv-verified/lib/*/site-packages/webarena_verified/assets/dataset/test.raw.json"):
        tasks = json.loads(path.read_text(encoding="utf-8"))
        sites: dict[int, list[set[str]]] = defaultdict(list)
        for task in tasks:
            sites[task["intent_template_id"]].append(set(task["sites"]))
        assert {one.number: one.tasks for one in intents()} == Counter(t["intent_template_id"] for t in tasks)
        assert {one.number: set(one.sites) for one in intents()} == {n: set.intersection(*s) for n, s in sites.items()}


def test_the_documented_coverage_is_that_of_the_mapping() -> None:
    text = (ROOT / "docs" / "webarena.md").read_text(encoding="utf-8")
    shown = text.partition("<!-- coverage -->")[2].partition("<!-- end of coverage -->")[0]
    assert shown.strip().splitlines() == list(coverage_table())
