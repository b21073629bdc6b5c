"""The 27 tasks of AgentGym-RL: which of our environments and groups stand in which row, and what a run scores there.

A row is a stand-in where its episodes are not of the benchmark that it is named after but of one of our own of the same
kind: WebArena's on our own sites, Search's over the embedded questions. A run with the real sites or data sets fills
the same rows with what they are named after.

Source: Xi et al., AgentGym-RL (arXiv 2509.08755) for scenarios, and for the rows of WebArena, Search and TextCraft.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from statistics import fmean
from typing import Any, NamedTuple

from agentgym_envs.evaluate.episodes import Facts, facts_of, split
from agentgym_envs.evaluate.estimates import Estimate
from agentgym_envs.evaluate.metrics import Metrics, measure
from agentgym_envs.trajectory import Trajectory

_NAMESPACE = "AgentGym/"
_SEARCH = ("Search", "SearchRetry")
_OWN_ROWS = "the scenario's groups in six rows of our own choice; the paper's six are others"


class Row(NamedTuple):
    """A row of the table, and the groups that it is made of. `stand_in`: those that are no tasks of that name."""

    name: str
    groups: tuple[str, ...]
    stand_in: tuple[str, ...] = ()
    note: str = ""


class Scenario(NamedTuple):
    """A scenario, the names of its environments (without namespace and version), and its rows.

    Of the environments in `stand_in_envs` every episode is a stand-in. `note` goes with every table, `stand_in_note`
    with one of stand-ins.
    """

    name: str
    envs: tuple[str, ...]
    rows: tuple[Row, ...]
    stand_in_envs: tuple[str, ...] = ()
    note: str = ""
    stand_in_note: str = ""


SUITE = (
    Scenario(
        "WebArena",
        ("WebArenaOfficial", "WebArena"),
        (
            Row("Shopping", ("shopping",)),
            Row("CMS", ("cms",)),
            Row("Maps", ("maps",)),
            Row("GitLab & Reddit", ("gitlab-reddit", "code-and-forum")),
        ),
        stand_in_envs=("WebArena",),
        stand_in_note="stand-ins: tasks of our own, on our own sites",
    ),
    Scenario(
        "Search",
        _SEARCH,
        (
            # Questions that people asked, most of one hop; many of them are ambiguous (Min et al., arXiv 2004.10645).
            Row("NQ", ("nq",), ("1hop-country", "ambiguous"), "one fact on something well known, or on a namesake"),
            # Facts that a quiz asks for.
            Row("TriviaQA", ("triviaqa",), ("1hop-element",), "one fact, of chemistry"),
            # One relation of an entity that few pages mention (Mallen et al., arXiv 2212.10511).
            Row("PopQA", ("popqa",), ("1hop-airport",), "one fact on something little known"),
            # Bridges of two hops, and comparisons (Yang et al., arXiv 1809.09600).
            Row("HotpotQA", ("hotpotqa",), ("2hop-border", "compare"), "two hops, or the greater of two"),
            # Composed of two relations, or a comparison and then a relation (Ho et al., arXiv 2011.01060).
            Row("2WikiMultihopQA", ("2wikimultihopqa",), ("2hop-airport", "order"), "two hops, or one among several"),
            # Two to four hops that cannot be skipped (Trivedi et al., arXiv 2108.00573). What has to be gathered from
            # several pages and counted or added up belongs nowhere better.
            Row(
                "MuSiQue",
                ("musique",),
                ("3hop-airport", "3hop-city", "count", "sum", "difference"),
                "three hops, or several facts counted, added or subtracted",
            ),
            # Two hops that no page answers at once (Press et al., arXiv 2210.03350).
            Row("Bamboogle", ("bamboogle",), ("2hop-city",), "two hops"),
        ),
        stand_in_note="stand-ins: embedded questions of the same kind",
    ),
    Scenario(
        "TextCraft",
        ("TextCraft",),
        tuple(Row(f"Depth {depth}", (f"depth-{depth}",)) for depth in (1, 2, 3, 4)),
    ),
    Scenario(
        "BabyAI",
        ("BabyAI",),
        (
            Row("GoTo", ("GoTo",)),
            Row("PickUp", ("PickUp",)),
            Row("PutNext", ("PutNext",)),
            Row("Open & Unlock", ("Open", "Unlock")),  # doors are what both are about
            Row("Sequence", ("Sequence",)),
            Row("Synth & Boss", ("Synth", "Boss")),  # both draw the verb
        ),
        note=_OWN_ROWS,
    ),
    Scenario(
        "SciWorld",
        ("SciWorld",),
        (  # ScienceWorld's topics, with two joined to others, as there are six rows (Wang et al., arXiv 2203.07540)
            Row("Matter", ("boil", "melt", "freeze", "change-the-state-of-matter-of")),
            Row(
                "Measure",  # forces are found out by measuring, too
                (
                    "use-thermometer",
                    "measure-melting-point-known-substance",
                    "measure-melting-point-unknown-substance",
                    "inclined-plane-determine-angle",
                    "inclined-plane-friction-named-surfaces",
                    "inclined-plane-friction-unnamed-surfaces",
                ),
            ),
            Row(
                "Electricity",
                (
                    "power-component",
                    "power-component-renewable-vs-nonrenewable-energy",
                    "test-conductivity",
                    "test-conductivity-of-unknown-substances",
                ),
            ),
            Row("Find", ("find-living-thing", "find-non-living-thing", "find-plant", "find-animal")),
            Row(
                "Chemistry",
                (
                    "chemistry-mix",
                    "chemistry-mix-paint-secondary-color",
                    "chemistry-mix-paint-tertiary-color",
                ),
            ),
            Row(
                "Life",  # growing, lifespans, stages of life, genetics
                (
                    "grow-plant",
                    "grow-fruit",
                    "lifespan-longest-lived",
                    "lifespan-shortest-lived",
                    "lifespan-longest-lived-then-shortest-lived",
                    "identify-life-stages-1",
                    "identify-life-stages-2",
                    "mendelian-genetics-known-plant",
                    "mendelian-genetics-unknown-plant",
                ),
            ),
        ),
        note=_OWN_ROWS,
    ),
)
"""The table: five scenarios, 27 rows."""
SCENARIOS = tuple(scenario.name for scenario in SUITE)


class Place(NamedTuple):
    """Where an episode stands in the table."""

    scenario: str
    row: str
    stand_in: bool


@dataclass(frozen=True, slots=True)
class SuiteRow:
    """What a run scored in a row; `metrics` is None where it played nothing of it.

    `stand_in` says that the episodes are not of the benchmark that the row is named after; of a row without episodes,
    that the environment one would play by default is not. `note` says what the stand-ins are.
    """

    name: str
    stand_in: bool
    metrics: Metrics | None
    note: str


@dataclass(frozen=True, slots=True)
class SuiteScenario:
    """What a run scored in a scenario: by row, and over all its tasks together, as the paper does."""

    name: str
    rows: tuple[SuiteRow, ...]
    metrics: Metrics | None
    note: str


@dataclass(frozen=True, slots=True)
class SuiteTable:
    """The 27-task table of a run.

    `score` and `success` are means over the `played` scenarios that have a figure, each counting once. `outside` counts
    the episodes of each environment that belong to no row, `left_out` those of stand-ins where the run has episodes of
    the scenario's real tasks as well.
    """

    scenarios: tuple[SuiteScenario, ...]
    score: Estimate | None
    success: Estimate | None
    played: int
    outside: Mapping[str, int]
    left_out: int

    def to_json(self) -> dict[str, Any]:
        """As JSON objects and lists."""
        return {
            "scenarios": [_scenario_json(scenario) for scenario in self.scenarios],
            "score": self.score and asdict(self.score),
            "success": self.success and asdict(self.success),
            "played": self.played,
            "outside": dict(self.outside),
            "left_out": self.left_out,
        }


def suite_table(trajectories: Iterable[Trajectory]) -> SuiteTable:
    """The 27-task table of a set of episodes; the result does not depend on their order.

    Means over scenarios have the interval that the scenarios' own give (the method of variance estimates recovery).

    Source: Zou and Donner, Statistics in Medicine 27 (2008) 1693-1702.
    """
    placed, outside = dict[Place, list[Facts]](), Counter[str]()
    for facts in map(facts_of, trajectories):
        place = place_of(facts.key[0], facts.group)
        if place is None:
            outside[facts.key[0]] += 1
        else:
            placed.setdefault(place, []).append(facts)
    weak = _outdone(placed)
    scenarios = tuple(_scenario(row, {p: found for p, found in placed.items() if p not in weak}) for row in SUITE)
    metrics = [scenario.metrics for scenario in scenarios if scenario.metrics and scenario.metrics.tasks]
    return SuiteTable(
        scenarios=scenarios,
        score=_mean([row.score for row in metrics if row.score]),
        success=_mean([row.success for row in metrics if row.success]),
        played=len(metrics),
        outside=dict(sorted(outside.items())),
        left_out=sum(len(placed[place]) for place in weak),
    )


def place_of(env_id: str, group: str) -> Place | None:
    """Where the episodes of a group stand; None if in no row."""
    return _PLACES.get((env_id.rpartition("-v")[0], group))


def _places() -> Iterator[tuple[tuple[str, str], Place]]:
    for scenario in SUITE:
        for row in scenario.rows:
            for env in scenario.envs:
                for group in (*row.groups, *row.stand_in):
                    stand_in = env in scenario.stand_in_envs or group in row.stand_in
                    yield (_NAMESPACE + env, group), Place(scenario.name, row.name, stand_in)


_PLACES = dict(_places())


def _outdone(placed: Mapping[Place, Any]) -> set[Place]:
    """The stand-ins of scenarios of which there are real tasks, too: the two in one mean would be neither."""
    real = {place.scenario for place in placed if not place.stand_in}
    return {place for place in placed if place.stand_in and place.scenario in real}


def _scenario(scenario: Scenario, placed: Mapping[Place, Sequence[Facts]]) -> SuiteScenario:
    own = {place: found for place, found in placed.items() if place.scenario == scenario.name}
    everything = [facts for found in own.values() for facts in found]
    stand_in = all(place.stand_in for place in own) and bool(scenario.stand_in_envs or scenario.rows[0].stand_in)
    rows = []
    for row in scenario.rows:
        found = own.get(Place(scenario.name, row.name, stand_in), [])
        rows.append(SuiteRow(row.name, stand_in, _metrics(found, row.name), row.note if stand_in else ""))
    return SuiteScenario(
        scenario.name, tuple(rows), _metrics(everything, None), scenario.stand_in_note if stand_in else scenario.note
    )


def _metrics(episodes: Sequence[Facts], group: str | None) -> Metrics | None:
    envs = split(episodes, lambda facts: facts.key[0])
    return measure(episodes, next(iter(envs)) if len(envs) == 1 else None, group) if episodes else None


def _mean(estimates: Sequence[Estimate]) -> Estimate | None:
    if not estimates:
        return None
    mean, count = fmean(estimate.mean for estimate in estimates), len(estimates)
    low = math.sqrt(math.fsum((estimate.mean - estimate.low) ** 2 for estimate in estimates)) / count
    high = math.sqrt(math.fsum((estimate.high - estimate.mean) ** 2 for estimate in estimates)) / count
    return Estimate(mean, max(mean - low, 0.0), min(mean + high, 1.0))


def _scenario_json(scenario: SuiteScenario) -> dict[str, Any]:
    rows = [
        {"name": row.name, "stand_in": row.stand_in, "note": row.note, "metrics": row.metrics and row.metrics.to_json()}
        for row in scenario.rows
    ]
    metrics = scenario.metrics and scenario.metrics.to_json()
    return {"name": scenario.name, "note": scenario.note, "rows": rows, "metrics": metrics}
