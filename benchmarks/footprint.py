"""Measure the size of an installation: packages, megabytes and import time, for the core and each extra alone.

    python -m benchmarks.footprint --out benchmarks/results/footprint.json           # everything, an hour with torch
    python -m benchmarks.footprint --only core,babyai,serve --peers ''           # these alone

It builds the wheel and the sdist, installs the wheel into a fresh virtual environment for each row, does one thing
with it that only this extra makes possible, and removes the environment. The sdist is installed once, without extras.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import tomllib
import venv
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks.common import machine

ROOT = Path(__file__).parents[1]
TARGETS = {"packages": 20, "megabytes": 110.0, "import_seconds": 0.3}
"""Upper bounds for the core."""
CORE = "core"
TORCH = {"trl", "verl", "search-dense", "all"}
"""The extras that bring torch: it comes first and pinned, as `scripts/check` installs it."""
LEFT_OUT = {"dev", "docs"}
PEERS = {name: name.replace("-", "_") for name in ("gymnasium", "skyrl-gym", "textarena", "openenv", "verifiers")}
"""Packages with environments for agents, and what one imports of them."""
OURS = ("pip", "setuptools")
"""Packages of an empty virtual environment."""
SECONDS = 3000.0
_SOLVE: dict[str, Sequence[str]] = {
    CORE: ("textcraft",),
    "textcraft": ("textcraft",),
    "babyai": ("babyai",),
    "sciworld": ("sciworld", "--groups", "find-plant"),  # other groups may take minutes to plan
    "search": ("search",),
    "webarena": ("webarena",),
    "miniwob": ("miniwob",),
    "multiagent": ("textcraftcoop",),
}
"""The extras that make a scenario possible, which is solved by its oracle."""
_IMPORTED = {
    "search-fast": "bm25s, numba",
    "search-dense": "faiss, sentence_transformers",
    "images": "PIL.Image",
    "pixels": "PIL.Image, playwright",
    "mcp": "agentgym_envs.mcp",
    "inspect": "agentgym_envs.inspect_tasks",
    "verifiers": "agentgym_verifiers",
}
_COUNT = (
    "import importlib.metadata as m, json; "
    "print(json.dumps(sorted({d.name.lower().replace('_', '-'): d.version for d in m.distributions()}.items())))"
)
_IMPORT = (
    "import time; cpu, wall = time.process_time(), time.perf_counter(); import {}; "
    "print(time.process_time() - cpu, time.perf_counter() - wall)"
)


class Venv:
    """A fresh virtual environment, and programs in it."""

    def __init__(self, folder: Path) -> None:
        venv.create(folder, with_pip=True, clear=True)
        self.folder = folder

    def run(self, *words: str, timeout: float = 600.0) -> str:
        """Return the output of a program of the environment. Raises CalledProcessError."""
        path = os.pathsep.join([str(self.folder / "bin"), os.environ.get("PATH", "")])
        clean = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
        home = {"PATH": path, "OMP_NUM_THREADS": "1", "AGENTGYM_CACHE": str(self.folder / "cache")}
        program = str(self.folder / "bin" / words[0])
        done = subprocess.run(
            [program, *words[1:]],
            env=clean | home,
            cwd=self.folder,
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )
        if done.returncode:
            raise subprocess.CalledProcessError(done.returncode, words, done.stdout, done.stderr)
        return done.stdout

    def python(self, code: str) -> str:
        return self.run("python", "-c", code)

    def install(self, *requirements: str) -> float:
        """Seconds that pip took."""
        began = time.perf_counter()
        self.run("python", "-m", "pip", "install", "-q", "--disable-pip-version-check", *requirements, timeout=SECONDS)
        return time.perf_counter() - began

    def packages(self) -> dict[str, str]:
        return {name: version for name, version in json.loads(self.python(_COUNT)) if name not in OURS}

    def megabytes(self) -> float:
        """Of all that was installed, with the compiled modules that pip leaves."""
        packages = next(self.folder.glob("lib/python3*/site-packages"))
        kept = [path for path in packages.iterdir() if not re.match(r"(pip|setuptools|_distutils_hack)\b", path.name)]
        files = (file for top in kept for file in ([top] if top.is_file() else top.rglob("*")))
        return sum(file.stat().st_size for file in files if file.is_file() and not file.is_symlink()) / 1e6

    def import_seconds(self, module: str, repeats: int) -> tuple[float, float]:
        """Of fresh interpreters: the least CPU seconds, to which what else the machine does only adds; the median wall
        seconds, which is what one waits for. The first reads the files from disk and does not count.
        """
        self.python(_IMPORT.format(module))
        cpu, wall = zip(*(map(float, self.python(_IMPORT.format(module)).split()) for _ in range(repeats)), strict=True)
        return min(cpu), statistics.median(wall)

    def ready(self) -> int:
        """The number of ready environments reported by the doctor. Raises CalledProcessError if the core is broken."""
        found = json.loads(self.run("agentgym", "doctor", "--json"))
        return sum(one["ready"] for one in found["environments"])


@contextmanager
def fresh(scratch: Path) -> Iterator[Venv]:
    """A virtual environment that is gone afterwards: the large ones take gigabytes."""
    folder = Path(tempfile.mkdtemp(prefix="venv-", dir=scratch))
    try:
        yield Venv(folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def build(scratch: Path) -> dict[str, Path]:
    """The wheel and the sdist of this tree, by hatchling in an environment of its own."""
    out = scratch / "dist"
    with fresh(scratch) as env:
        env.install("hatchling>=1.27")
        done = subprocess.run(
            [str(env.folder / "bin" / "python"), "-m", "hatchling", "build", "-d", str(out)],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=False,
        )
    if done.returncode:
        raise SystemExit(f"the build failed:\n{done.stderr}")
    return {"wheel": next(out.glob("*.whl")), "sdist": next(out.glob("*.tar.gz"))}


def extras() -> list[str]:
    """As pyproject.toml has them, the heavy ones last."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    names = [name for name in project["optional-dependencies"] if name not in LEFT_OUT]
    return sorted(names, key=lambda name: (name in TORCH, name == "all"))


def smoke(env: Venv, extra: str) -> str:
    """Do what the extra is for, and say what that was. Raises CalledProcessError."""
    if extra in _SOLVE:
        return _solved(env, *_SOLVE[extra])
    if extra in _IMPORTED:
        env.python(f"import {_IMPORTED[extra]}")
        return f"import {_IMPORTED[extra]}"
    return _SMOKES[extra](env)


def _solved(env: Venv, name: str, *words: str) -> str:
    found = json.loads(env.run("agentgym", "solve", name, "--split", "test", "--json", *words))
    if not found["success"]:
        raise subprocess.CalledProcessError(1, ["solve", name], json.dumps(found), "the oracle did not solve it")
    return f"{found['task']} solved in {len(found['turns'])} turns"


def _read_tasks(env: Venv) -> str:
    """The sites are not here, but their tasks are."""
    module = "agentgym_envs.webarena.official.tasks"
    count = env.python(f"from {module} import open_tasks; print(len(open_tasks().tasks))")
    return f"{count.strip()} tasks of WebArena read"


def _served(env: Venv) -> str:
    """A server on a free port, and an episode behind it."""
    words = [str(env.folder / "bin" / "agentgym"), "serve", "textcraft", "--port", "0"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as server:
        try:
            assert server.stdout is not None
            found = re.search(r"http://\S+", server.stdout.readline())
            assert found is not None
            return f"over HTTP: {_solved(env, 'textcraft', '--env-arg', f'base_url={found[0]}')}"
        finally:
            server.terminate()


def _viewed(env: Venv) -> str:
    env.run("agentgym", "demos", "textcraft", "--tasks", "3", "--out", "demos.jsonl")
    env.run("agentgym", "view", "demos.jsonl", "--export", "page.html")
    return f"a page of three episodes, {(env.folder / 'page.html').stat().st_size // 1000} kB"


def _exported(env: Venv) -> str:
    env.run("agentgym", "export", "--format", "hf-dataset", "--env", "textcraft", "--out", "hub")
    return f"a data set in Parquet, {sum(file.stat().st_size for file in env.folder.glob('hub/*/*')) // 1000} kB"


def _model(env: Venv) -> str:
    env.run("agentgym", "tiny-model", "model")
    env.run("agentgym", "eval", "textcraft", "--policy", "hf:model", "--tasks", "1", "--max-turns", "2")
    return "a tiny model made, and an episode played with it"


def _verl(env: Venv) -> str:
    env.run("agentgym", "verl", "data", "textcraft", "--tasks", "4", "--out", "data")
    return "a dataset of four tasks written"


def _everything(env: Venv) -> str:
    return "; ".join([_solved(env, "babyai"), _served(env), _model(env)])


_SMOKES = {
    "serve": _served,
    "view": _viewed,
    "parquet": _exported,
    "webarena-verified": _read_tasks,
    "trl": _model,
    "verl": _verl,
    "all": _everything,
}


def measure(env: Venv, module: str, repeats: int) -> dict[str, Any]:
    packages = env.packages()
    cpu, wall = env.import_seconds(module, repeats)
    return {
        "packages": len(packages),
        "megabytes": round(env.megabytes(), 1),
        "import_seconds": round(cpu, 3),
        "import_wall_seconds": round(wall, 3),
    }


def measure_extra(scratch: Path, wheel: Path, extra: str, torch: str, repeats: int) -> dict[str, Any]:
    """One row. What fails is in it as `error`: the other rows are worth having."""
    with fresh(scratch) as env:
        try:
            seconds = env.install(*torch.split()) if extra in TORCH else 0.0
            wanted = "" if extra == CORE else f"[{extra}]"
            seconds += env.install(f"agentgym-envs{wanted} @ {wheel.as_uri()}")
            row = {**measure(env, "agentgym_envs", repeats), "install_seconds": round(seconds, 1)}
            began = time.perf_counter()
            did = smoke(env, extra)
            return {**row, "ready": env.ready(), "did": did, "did_seconds": round(time.perf_counter() - began, 1)}
        except (subprocess.CalledProcessError, subprocess.TimeoutExpired, AssertionError) as error:
            return {"error": _last_line(error)}


def measure_peer(scratch: Path, package: str, module: str, repeats: int) -> dict[str, Any]:
    """A package of others as pip installs it today; the version is in the row."""
    with fresh(scratch) as env:
        try:
            seconds = env.install(package)
            version = env.packages()[package]
            row = measure(env, module, repeats)
            return {"version": version, **row, "install_seconds": round(seconds, 1)}
        except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as error:
            return {"error": _last_line(error)}


def _last_line(error: Exception) -> str:
    said = (getattr(error, "stderr", "") or str(error)).strip().splitlines()
    return said[-1][:300] if said else repr(error)


def check_sdist(scratch: Path, sdist: Path) -> str:
    """That the sdist builds and plays, too."""
    with fresh(scratch) as env:
        env.install(str(sdist))
        return smoke(env, CORE)


def show(result: Mapping[str, Any]) -> None:
    for name, built in result["built"].items():
        print(f"{name}: {built['megabytes']} MB")
    print(f"sdist: {result['sdist_did']}\n")
    columns = ("packages", "megabytes", "import_seconds", "import_wall_seconds", "install_seconds")
    print(f"{'':<24}" + "".join(f"{name.replace('_', ' '):>20}" for name in columns))
    for name, row in {**result["extras"], **result["peers"]}.items():
        cells = row.get("error") or "".join(f"{row.get(column, ''):>20}" for column in columns)
        print(f"{name:<24}{cells}  {row.get('did', '')}")
    for name, maximum in TARGETS.items():
        value = result["extras"].get(CORE, {}).get(name)
        if value is not None:
            print(f"core, {name}: {value} (at maximum {maximum:g}): {'yes' if value <= maximum else 'NO'}")


def _merged(out: Path | None, result: dict[str, Any]) -> dict[str, Any]:
    """With the rows that an earlier run of other extras left in the file."""
    if out is None or not out.exists():
        return result
    earlier = json.loads(out.read_text(encoding="utf-8"))
    for part in ("extras", "peers"):
        result[part] = {**earlier.get(part, {}), **result[part]}
    result["extras"] = {name: result["extras"][name] for name in [CORE, *extras()] if name in result["extras"]}
    return result


def main(words: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, help="write the figures as JSON; rows that it has of others are kept")
    parser.add_argument("--only", help="these extras, separated by commas; `core` is none")
    parser.add_argument("--peers", default=",".join(PEERS), help="these packages of others")
    parser.add_argument("--torch", default="torch==2.13.0", help="what pip is asked for first, with options of pip")
    parser.add_argument("--repeats", type=int, default=5, help="imports a row")
    arguments = parser.parse_args(words)
    names = [CORE, *extras()] if arguments.only is None else [name for name in arguments.only.split(",") if name]
    if unknown := set(names) - set([CORE, *extras()]):
        parser.error(f"there is no extra {', '.join(sorted(unknown))}; there are {', '.join([CORE, *extras()])}")
    with tempfile.TemporaryDirectory(prefix="agentgym-footprint-") as folder:
        result = _measure_all(Path(folder), names, arguments)
    show(result)


def _measure_all(scratch: Path, names: Sequence[str], arguments: argparse.Namespace) -> dict[str, Any]:
    """Everything asked for; what there is already is written after each row."""
    built = build(scratch)
    result: dict[str, Any] = {
        "machine": machine(),
        "targets": TARGETS,
        "built": {name: {"megabytes": round(path.stat().st_size / 1e6, 2)} for name, path in built.items()},
        "sdist_did": check_sdist(scratch, built["sdist"]),
        "extras": {},
        "peers": {},
    }
    for name in names:
        print(f"{name} ...", file=sys.stderr)
        result["extras"][name] = measure_extra(scratch, built["wheel"], name, arguments.torch, arguments.repeats)
        result = _kept(arguments.out, result)
    for package in filter(None, arguments.peers.split(",")):
        print(f"{package} ...", file=sys.stderr)
        result["peers"][package] = measure_peer(scratch, package, PEERS.get(package, package), arguments.repeats)
        result = _kept(arguments.out, result)
    return result


def _kept(out: Path | None, result: dict[str, Any]) -> dict[str, Any]:
    merged = _merged(out, result)
    if out is not None:
        out.write_text(json.dumps(merged, indent=2) + "\n", encoding="utf-8")
    return merged


if __name__ == "__main__":
    main()
