"""AgentGym-RL's table of 27 tasks: the environments and groups of each row, and the results of a run.

A row is a stand-in if its episodes are of our own tasks of the same kind and not of the benchmark in its name: WebArena
on our own sites, Search over the embedded questions. A run with the real sites or data sets fills the same rows with
the real tasks.

Source: Xi et al., AgentGym-RL (arXiv 2509.08755) for scenarios, and for the rows of WebArena, Search and TextCraft.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from statistics import fmean
from typing import Any, NamedTuple

from agentgym_envs.evaluate.episodes import EpisodeFacts, facts_of, split
from agentgym_envs.evaluate.estimates import Estimate
from agentgym_envs.evaluate.metrics import Metrics, measure
from agentgym_envs.trajectory import Trajectory

_NAMESPACE = "AgentGym/"
_SEARCH = ("Search", "SearchRetry")
_OWN_ROWS = "the scenario's groups in six rows of our own choice; the paper's six are others"


class RowSpec(NamedTuple):
    """The definition of a row: its groups of real tasks, and the groups that are stand-ins."""

    name: str
    groups: tuple[str, ...]
    stand_in: tuple[str, ...] = ()
    note: str = ""


class ScenarioSpec(NamedTuple):
    """The definition of a scenario: its environments (without namespace and version) and its rows.

    All episodes of `stand_in_envs` are stand-ins. A table of stand-ins has `stand_in_note`, any other table `note`.
    """

    name: str
    envs: tuple[str, ...]
    rows: tuple[RowSpec, ...]
    stand_in_envs: tuple[str, ...] = ()
    note: str = ""
    stand_in_note: str = ""


AGENTGYM_RL_TABLE = (
    ScenarioSpec(
        "WebArena",
        ("WebArenaOfficial", "WebArena"),
        (
            RowSpec("Shopping", ("shopping",)),
            RowSpec("CMS", ("cms",)),
            RowSpec("Maps", ("maps",)),
            RowSpec("GitLab & Reddit", ("gitlab-reddit", "code-and-forum")),
        ),
        stand_in_envs=("WebArena",),
        stand_in_note="stand-ins: tasks of our own, on our own sites",
    ),
    ScenarioSpec(
        "Search",
        _SEARCH,
        (
            # Questions of search users, most with one hop; many are ambiguous (Min et al., arXiv 2004.10645).
            RowSpec("NQ", ("nq",), ("1hop-country", "ambiguous"), "one fact on something well known, or on a namesake"),
            # Quiz questions.
            RowSpec("TriviaQA", ("triviaqa",), ("1hop-element",), "one fact, of chemistry"),
            # One relation of an entity that few pages mention (Mallen et al., arXiv 2212.10511).
            RowSpec("PopQA", ("popqa",), ("1hop-airport",), "one fact on something little known"),
            # Bridges of two hops, and comparisons (Yang et al., arXiv 1809.09600).
            RowSpec("HotpotQA", ("hotpotqa",), ("2hop-border", "compare"), "two hops, or the greater of two"),
            # Composed of two relations, or a comparison and then a relation (Ho et al., arXiv 2011.01060).
            RowSpec(
                "2WikiMultihopQA", ("2wikimultihopqa",), ("2hop-airport", "order"), "two hops, or one among several"
            ),
            # Two to four hops that cannot be skipped (Trivedi et al., arXiv 2108.00573). Longer routes, chains of
            # comparisons, and counts and sums over several pages fit this row best.
            RowSpec(
                "MuSiQue",
                ("musique",),
                ("3hop-airport", "3hop-city", "4hop", "5hop", "6hop", "chain", "count", "sum", "difference"),
                "three to six hops, or several facts compared, counted, added or subtracted",
            ),
            # Two hops that no page answers at once (Press et al., arXiv 2210.03350).
            RowSpec("Bamboogle", ("bamboogle",), ("2hop-city",), "two hops"),
        ),
        stand_in_note="stand-ins: embedded questions of the same kind",
    ),
    ScenarioSpec(
        "TextCraft",
        ("TextCraft",),
        tuple(RowSpec(f"Depth {depth}", (f"depth-{depth}",)) for depth in (1, 2, 3, 4)),
    ),
    ScenarioSpec(
        "BabyAI",
        ("BabyAI",),
        (
            RowSpec("GoTo", ("GoTo",)),
            RowSpec("PickUp", ("PickUp",)),
            RowSpec("PutNext", ("PutNext",)),
            RowSpec("Open & Unlock", ("Open", "Unlock")),  # both are about doors
            RowSpec("Sequence", ("Sequence",)),
            RowSpec("Synth & Boss", ("Synth", "Boss")),  # both draw the kind of instruction at random
        ),
        note=_OWN_ROWS,
    ),
    ScenarioSpec(
        "SciWorld",
        ("SciWorld",),
        (  # ScienceWorld's topics, two of them merged to get six rows (Wang et al., arXiv 2203.07540)
            RowSpec("Matter", ("boil", "melt", "freeze", "change-the-state-of-matter-of")),
            RowSpec(
                "Measure",  # includes forces, which are measured as well
                (
                    "use-thermometer",
                    "measure-melting-point-known-substance",
                    "measure-melting-point-unknown-substance",
                    "inclined-plane-determine-angle",
                    "inclined-plane-friction-named-surfaces",
                    "inclined-plane-friction-unnamed-surfaces",
                ),
            ),
            RowSpec(
                "Electricity",
                (
                    "power-component",
                    "power-component-renewable-vs-nonrenewable-energy",
                    "test-conductivity",
                    "test-conductivity-of-unknown-substances",
                ),
            ),
            RowSpec("Find", ("find-living-thing", "find-non-living-thing", "find-plant", "find-animal")),
            RowSpec(
                "Chemistry",
                (
                    "chemistry-mix",
                    "chemistry-mix-paint-secondary-color",
                    "chemistry-mix-paint-tertiary-color",
                ),
            ),
            RowSpec(
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
"""The definition of the table: five scenarios with 27 rows."""
SCENARIO_NAMES = tuple(scenario.name for scenario in AGENTGYM_RL_TABLE)


class TablePosition(NamedTuple):
    """The scenario and row of an episode in the table."""

    scenario: str
    row: str
    stand_in: bool


@dataclass(frozen=True, slots=True)
class AgentGymRLRow:
    """The metrics of a run in a row; None without episodes.

    `stand_in` is True if the episodes are not of the benchmark in the name of the row; for a row without episodes, if
    those of the default environment are not. `note` describes the stand-ins.
    """

    name: str
    stand_in: bool
    metrics: Metrics | None
    note: str


@dataclass(frozen=True, slots=True)
class AgentGymRLScenario:
    """The metrics of a run in a scenario: by row, and over all tasks together, as in the paper."""

    name: str
    rows: tuple[AgentGymRLRow, ...]
    metrics: Metrics | None
    note: str


@dataclass(frozen=True, slots=True)
class AgentGymRLTable:
    """The 27-task table of a run.

    `score` and `success` are means over the `played` scenarios with episodes; each scenario counts once. `outside` is
    the number of episodes per environment that belong to no row. `left_out` is the number of stand-in episodes in
    scenarios whose real tasks the run also played.
    """

    scenarios: tuple[AgentGymRLScenario, ...]
    score: Estimate | None
    success: Estimate | None
    played: int
    outside: Mapping[str, int]
    left_out: int

    def to_json(self) -> dict[str, Any]:
        """Convert to JSON objects and lists."""
        return {
            "scenarios": [_scenario_json(scenario) for scenario in self.scenarios],
            "score": self.score and asdict(self.score),
            "success": self.success and asdict(self.success),
            "played": self.played,
            "outside": dict(self.outside),
            "left_out": self.left_out,
        }


def make_agentgym_rl_table(trajectories: Iterable[Trajectory]) -> AgentGymRLTable:
    """Compute the 27-task table of a set of episodes, in any order.

    The intervals of means over scenarios are combined from those of the scenarios, by the method of variance estimates
    recovery.

    Source: Zou and Donner, Statistics in Medicine 27 (2008) 1693-1702.
    """
    placed, outside = dict[TablePosition, list[EpisodeFacts]](), Counter[str]()
    for facts in map(facts_of, trajectories):
        position = position_of(facts.key[0], facts.group)
        if position is None:
            outside[facts.key[0]] += 1
        else:
            placed.setdefault(position, []).append(facts)
    superseded = _superseded(placed)
    used = {position: found for position, found in placed.items() if position not in superseded}
    scenarios = tuple(_scenario(scenario, used) for scenario in AGENTGYM_RL_TABLE)
    metrics = [scenario.metrics for scenario in scenarios if scenario.metrics and scenario.metrics.tasks]
    return AgentGymRLTable(
        scenarios=scenarios,
        score=_mean([row.score for row in metrics if row.score]),
        success=_mean([row.success for row in metrics if row.success]),
        played=len(metrics),
        outside=dict(sorted(outside.items())),
        left_out=sum(len(placed[position]) for position in superseded),
    )


def position_of(env_id: str, group: str) -> TablePosition | None:
    """The position of a group of tasks in the table; None if it belongs to no row."""
    return _POSITIONS.get((env_id.rpartition("-v")[0], group))


def _positions() -> Iterator[tuple[tuple[str, str], TablePosition]]:
    for scenario in AGENTGYM_RL_TABLE:
        for row in scenario.rows:
            for env in scenario.envs:
                for group in (*row.groups, *row.stand_in):
                    stand_in = env in scenario.stand_in_envs or group in row.stand_in
                    yield (_NAMESPACE + env, group), TablePosition(scenario.name, row.name, stand_in)


_POSITIONS = dict(_positions())


def _superseded(placed: Mapping[TablePosition, Any]) -> set[TablePosition]:
    """Stand-ins of scenarios with real tasks in the run. A mean over both would be meaningless."""
    real = {position.scenario for position in placed if not position.stand_in}
    return {position for position in placed if position.stand_in and position.scenario in real}


def _scenario(scenario: ScenarioSpec, placed: Mapping[TablePosition, Sequence[EpisodeFacts]]) -> AgentGymRLScenario:
    own = {position: found for position, found in placed.items() if position.scenario == scenario.name}
    everything = [facts for found in own.values() for facts in found]
    stand_in = all(position.stand_in for position in own) and bool(scenario.stand_in_envs or scenario.rows[0].stand_in)
    rows = []
    for row in scenario.rows:
        found = own.get(TablePosition(scenario.name, row.name, stand_in), [])
        rows.append(AgentGymRLRow(row.name, stand_in, _metrics(found, row.name), row.note if stand_in else ""))
    return AgentGymRLScenario(
        scenario.name, tuple(rows), _metrics(everything, None), scenario.stand_in_note if stand_in else scenario.note
    )


def _metrics(episodes: Sequence[EpisodeFacts], group: str | None) -> Metrics | None:
    envs = split(episodes, lambda facts: facts.key[0])
    return measure(episodes, next(iter(envs)) if len(envs) == 1 else None, group) if episodes else None


def _mean(estimates: Sequence[Estimate]) -> Estimate | None:
    if not estimates:
        return None
    mean, count = fmean(estimate.mean for estimate in estimates), len(estimates)
    low = math.sqrt(math.fsum((estimate.mean - estimate.low) ** 2 for estimate in estimates)) / count
    high = math.sqrt(math.fsum((estimate.high - estimate.mean) ** 2 for estimate in estimates)) / count
    return Estimate(mean, max(mean - low, 0.0), min(mean + high, 1.0))


def _scenario_json(scenario: AgentGymRLScenario) -> dict[str, Any]:
    rows = [
        {"name": row.name, "stand_in": row.stand_in, "note": row.note, "metrics": row.metrics and row.metrics.to_json()}
        for row in scenario.rows
    ]
    metrics = scenario.metrics and scenario.metrics.to_json()
    return {"name": scenario.name, "note": scenario.note, "rows": rows, "metrics": metrics}
