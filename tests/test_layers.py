"""The shape of the tree: who may import whom, which packages are needed where, and how long things may be.

`errors, file_locks, whole_files → model_requests → spaces, schedule, seeding, times, image_files, recording → task,
grammar → difficulty → core → image_observations → wrappers, trajectory, hosting, the scenarios → vector → rollout →
labels → evaluate, http, export, viewer, multiagent → validate, audit, mcp, inspect_tasks → cli → adapters`. A scenario
is a folder of the package with an `env.py` in or below it, so that a new one is held to the same rules without a change
here.
"""

import ast
import statistics
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
PACKAGE = "agentgym_envs"
FILES = sorted(ROOT.glob(f"{PACKAGE}/**/*.py"))
ADAPTER_FILES = sorted(ROOT.glob("adapters/*/*/**/*.py"))
SCENARIOS = {path.relative_to(ROOT / PACKAGE).parts[0] for path in ROOT.glob(f"{PACKAGE}/*/**/env.py")}

ROOT_PACKAGE = ""  # agentgym_envs/__init__.py
LAYERS = [
    {"errors", "file_locks", "whole_files"},
    {"model_requests"},
    {"spaces", "schedule", "seeding", "times", "image_files", "corpus", "chat_judge", "recording"},
    {"task", "grammar"},
    {"difficulty", "command_tools"},
    {"core"},
    {"image_observations"},
    {"trajectory", "wrappers", "registration", "hosting", *SCENARIOS},
    {"vector"},
    {ROOT_PACKAGE},
    {"rollout"},
    {"labels"},
    {"evaluate", "http", "export", "viewer", "multiagent"},
    {"validate", "audit", "mcp", "inspect_tasks"},
    {"cli"},
    {"__main__"},
]
RANK = {part: rank for rank, layer in enumerate(LAYERS) for part in layer}

TRAINING = {"torch", "transformers", "trl", "verl", "vllm", "peft", "accelerate", "datasets", "ray"}
ADAPTERS = {path.parents[0].name for path in ROOT.glob("adapters/*/*/__init__.py")}
EVERYWHERE = {"gymnasium", "numpy"}
"""Packages that every module may import; the table adds to it. Scenarios import the rest when first needed."""
THIRD_PARTY = {
    "image_observations": {"PIL"},
    "model_requests": {"httpx"},
    "chat_judge": {"httpx"},
    "rollout": {"httpx"},
    "http": {"httpcore", "httpx", "msgspec", "prometheus_client", "starlette", "uvicorn"},
    "export": {"pyarrow"},
    "viewer": {"PIL", "msgspec", "starlette", "uvicorn"},
    "cli": {"httpx", "rich", "typer", "click"},
    "mcp": {"mcp", "mcp_types", "pydantic", "starlette"},
    "inspect_tasks": {"inspect_ai", "pydantic"},
    "multiagent": {"pettingzoo"},
}
MAY_NAME = {
    "audit": {"babyai", "webarena"},
    "multiagent": {"textcraft"},
    "http": {"babyai", "sciworld", "search"},
    "viewer": {"babyai", "sciworld", "textcraft", "webarena"},
    "cli": {"search", "webarena"},
}
"""Parts that name a scenario: attackers of its rules, the cooperative form of one, the translation of AgentGym's
task numbers, and the pictures of an episode."""


class Import(NamedTuple):
    module: str
    line: int
    deferred: bool  # inside a function, or only seen by type checkers

    @property
    def top(self) -> str:
        return self.module.split(".")[0]


def module_name(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def part_of(module: str) -> str:
    """The child of the package that a module lies in: `textcraft` of `agentgym_envs.textcraft.env`."""
    return [*module.split("."), ROOT_PACKAGE][1]


@cache
def is_module(name: str) -> bool:
    path = ROOT / name.replace(".", "/")
    return path.is_dir() or path.with_suffix(".py").is_file()


def resolve(node: ast.ImportFrom, path: Path) -> Iterator[str]:
    """The modules that `from x import a, b` loads: `x.a` if that is a module, else `x`."""
    package = list(path.relative_to(ROOT).parts[:-1])
    base = package[: len(package) - node.level + 1] if node.level else []
    module = ".".join([*base, *([node.module] if node.module else [])])
    for alias in node.names:
        yield f"{module}.{alias.name}" if is_module(f"{module}.{alias.name}") else module


def walk(node: ast.AST, path: Path, deferred: bool) -> Iterator[Import]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.expr):  # most nodes, and none of them imports
            continue
        if isinstance(child, ast.Import):
            yield from (Import(alias.name, child.lineno, deferred) for alias in child.names)
        elif isinstance(child, ast.ImportFrom):
            yield from (Import(name, child.lineno, deferred) for name in resolve(child, path))
        yield from walk(child, path, deferred or defers(child))


def defers(node: ast.AST) -> bool:
    """True if the code below does not run at import."""
    if isinstance(node, ast.If):
        return isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"
    return isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)


def statements(node: ast.AST) -> Iterator[ast.AST]:
    """All nodes below that are no expressions; most nodes are expressions."""
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, ast.expr):
            yield child
            yield from statements(child)


class Facts(NamedTuple):
    """The facts that these tests need about a file. Its syntax tree is not cached: there are hundreds, and large."""

    lines: int
    imports: list[Import]  # of what is not in Python's own library
    functions: list[tuple[int, str]]  # length in lines, and place
    prints: list[int]  # the lines of the calls
    public_classes: list[str]


@cache
def facts(path: Path) -> Facts:
    text = path.read_text(encoding="utf-8")
    tree = ast.parse(text)
    functions = [node for node in statements(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    calls = [node.func for node in ast.walk(tree) if isinstance(node, ast.Call)] if "print(" in text else []
    return Facts(
        len(text.splitlines()),
        [i for i in walk(tree, path, False) if i.top not in sys.stdlib_module_names],
        [((f.end_lineno or 0) - f.lineno + 1, f"{path.relative_to(ROOT)}:{f.lineno} {f.name}") for f in functions],
        [called.lineno for called in calls if isinstance(called, ast.Name) and called.id == "print"],
        [node.name for node in tree.body if isinstance(node, ast.ClassDef) and not node.name.startswith("_")],
    )


def imports(path: Path) -> list[Import]:
    return facts(path).imports


def assert_no_faults(files: list[Path], faults: Callable[[Path], Sequence[object]]) -> None:
    """No file has any of the faults; one assertion for all, as thousands of tests take longer than what they ask."""
    found = {str(path.relative_to(ROOT)): wrong for path in files if (wrong := faults(path))}
    assert not found, "\n".join(f"{path}: {[*wrong]}" for path, wrong in found.items())


def test_the_scan_finds_every_form_of_import() -> None:
    source = (
        "import a.b\nfrom . import errors\nfrom ..core import X\ndef f():\n    from c import d\nif x:\n    import e"
        "\nif TYPE_CHECKING:\n    import g"
    )
    path = ROOT / PACKAGE / "textcraft" / "fake.py"
    assert list(walk(ast.parse(source), path, False)) == [
        ("a.b", 1, False),
        (f"{PACKAGE}.textcraft", 2, False),
        (f"{PACKAGE}.core", 3, False),
        ("c", 5, True),
        ("e", 7, False),
        ("g", 9, True),
    ]
    assert list(resolve(ast.parse(f"from {PACKAGE} import core, TextEnv").body[0], path)) == [  # type: ignore[arg-type]
        f"{PACKAGE}.core",
        PACKAGE,
    ]


def test_the_scan_finds_the_source_files() -> None:
    assert "textcraft" in SCENARIOS
    assert "agentgym_trl" in ADAPTERS
    assert len(FILES) > 15


def test_every_module_has_a_layer() -> None:
    parts = {part_of(module_name(path)) for path in FILES}
    assert parts <= RANK.keys(), f"give {parts - RANK.keys()} a layer in LAYERS"


def test_imports_point_down_the_layers() -> None:
    def upward(path: Path) -> list[Import]:
        rank = RANK[part_of(module_name(path))]
        return [i for i in imports(path) if i.top == PACKAGE and RANK[part_of(i.module)] > rank]

    assert_no_faults(FILES, upward)


def test_only_a_scenario_imports_its_own_modules() -> None:
    def foreign(path: Path) -> list[Import]:
        part = part_of(module_name(path))
        others = SCENARIOS - {part, *MAY_NAME.get(part, ())}
        return [i for i in imports(path) if i.top == PACKAGE and part_of(i.module) in others]

    assert_no_faults([path for path in FILES if RANK.get(part_of(module_name(path)), 9) < RANK["cli"]], foreign)


def test_the_suite_never_imports_a_training_library() -> None:
    assert_no_faults(FILES, lambda path: [i for i in imports(path) if i.top in TRAINING])


def test_only_a_running_command_imports_its_adapter() -> None:
    def wrong(path: Path) -> list[Import]:
        by_command = part_of(module_name(path)) == "cli"
        return [i for i in imports(path) if i.top in ADAPTERS and not (by_command and i.deferred)]

    assert_no_faults(FILES, wrong)


def test_third_party_packages_are_imported_by_their_owners_only() -> None:
    def foreign(path: Path) -> list[Import]:
        part = part_of(module_name(path))
        known = {PACKAGE, *ADAPTERS, *EVERYWHERE, *THIRD_PARTY.get(part, set())}
        return [i for i in imports(path) if i.top not in known and not (part in SCENARIOS and i.deferred)]

    assert_no_faults(FILES, foreign)


def test_an_adapter_does_not_import_another() -> None:
    def others(path: Path) -> list[Import]:
        own = path.relative_to(ROOT / "adapters").parts[1]
        return [i for i in imports(path) if i.top in ADAPTERS - {own}]

    assert_no_faults(ADAPTER_FILES, others)


def test_importing_the_suite_loads_nothing_heavy() -> None:
    code = "import sys, agentgym_envs; print(*sorted({name.split('.')[0] for name in sys.modules}))"
    out = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    loaded = set(out.stdout.split())
    assert PACKAGE in loaded
    assert not loaded & {*TRAINING, *ADAPTERS, "httpx", "rich", "typer", "click", "asyncio", "pandas", "matplotlib"}


def test_only_the_command_line_prints() -> None:
    quiet = [path for path in FILES + ADAPTER_FILES if "cli" not in path.relative_to(ROOT).with_suffix("").parts]
    assert_no_faults(quiet, lambda path: facts(path).prints)


def test_files_have_at_most_500_lines_and_functions_60() -> None:
    assert_no_faults(FILES + ADAPTER_FILES, lambda path: [facts(path).lines] if facts(path).lines > 500 else [])
    assert_no_faults(FILES + ADAPTER_FILES, lambda path: [one for one in facts(path).functions if one[0] > 60])


def test_half_of_all_functions_have_at_most_10_lines() -> None:
    lengths = [length for path in FILES + ADAPTER_FILES for length, _ in facts(path).functions]
    assert statistics.median(lengths) <= 10


def test_no_two_public_classes_share_a_name() -> None:
    homes: dict[str, list[str]] = {}
    for path in (*FILES, *ADAPTER_FILES):
        for name in facts(path).public_classes:
            homes.setdefault(name, []).append(str(path.relative_to(ROOT)))
    assert {name: found for name, found in homes.items() if len(found) > 1} == {}
