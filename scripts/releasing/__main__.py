"""Build, check and try a release, then tag it, which starts the workflow that publishes.

    scripts/release --dry-run                       everything but the tag; an hour, most of it for torch
    scripts/release --dry-run --extras core,serve   only these extras; `none` installs nothing
    scripts/release                                 the release: refuses unless all conditions are met

It writes sdist and wheel to dist/ and the notes to build/release-notes.md. It never uploads: a pushed tag v1.2.3 starts
.github/workflows/release.yml, which builds again, tests what it built and publishes it by PyPI's trusted publishing.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from check import git

from benchmarks.footprint import CORE, extras, fresh
from releasing.artefacts import Artefact, build, built, faults, metadata_faults
from releasing.gates import gates
from releasing.installs import DEFAULT_TORCH, install, try_extra
from releasing.project import Distribution, distributions, release_notes
from releasing.table import StepTable, require

ROOT = Path(__file__).resolve().parents[2]
TOOLS = ("hatchling>=1.27", "twine>=6", "readme-renderer[md]>=44", "trove-classifiers")
NOTES = Path("build/release-notes.md")


def main(words: Sequence[str] | None = None) -> int:
    """Return 0 if all steps succeeded, 1 if one failed, 2 if a condition of a release is not met."""
    arguments = _arguments(words)
    open_gates = [gate for gate in gates(ROOT, arguments.remote, ask_index=not arguments.offline) if gate.fault]
    if open_gates and not arguments.dry_run:
        print("scripts/release refuses:", *(f"  {gate.name}: {gate.fault}" for gate in open_gates), sep="\n")
        return 2
    table, version, commit = StepTable(), distributions(ROOT)[0].version, git(ROOT, "rev-parse", "HEAD")
    with tempfile.TemporaryDirectory(prefix="agentgym-release-") as folder:
        for one in distributions(ROOT):
            _check(one, Path(folder), arguments, table)
    table.run("release notes", lambda: _write_notes(version))
    print(f"\n{table.render()}\n")
    if not table.ok:
        return 1
    if arguments.dry_run:
        _say_what_is_next(version, commit, arguments.remote, [f"{gate.name}: {gate.fault}" for gate in open_gates])
        return 0
    return _tag(version, commit, arguments.remote)


def _arguments(words: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="scripts/release", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    known = [CORE, *extras()]
    parser.add_argument("--dry-run", action="store_true", help="do everything but the tag")
    parser.add_argument("--extras", help="install only these, separated by commas; `core` is the wheel alone")
    parser.add_argument("--built", action="store_true", help="take the artefacts in --out instead of building them")
    parser.add_argument("--out", type=Path, default=ROOT / "dist", help="folder of the artefacts (dist)")
    parser.add_argument("--remote", default="origin", help="the remote whose workflow publishes (origin)")
    parser.add_argument("--offline", action="store_true", help="do not ask the package index for earlier versions")
    parser.add_argument(
        "--torch",
        default=os.environ.get("AGENTGYM_TORCH", DEFAULT_TORCH),
        help=f"requirement of torch, with pip options (AGENTGYM_TORCH, else {DEFAULT_TORCH}); its CPU build is smaller",
    )
    arguments = parser.parse_args(words)
    arguments.extras = known if arguments.extras is None else [n for n in arguments.extras.split(",") if n != "none"]
    if unknown := set(arguments.extras) - set(known):
        parser.error(f"there is no extra {', '.join(sorted(unknown))}; choose from {', '.join(known)}, none")
    return arguments


def _check(one: Distribution, scratch: Path, arguments: argparse.Namespace, table: StepTable) -> None:
    """Build a distribution, inspect what was built, and install it."""
    made: list[Artefact] = []
    with fresh(scratch) as tools:
        install(tools, *TOOLS)
        python = str(tools.folder / "bin" / "python")
        table.run(f"{one.name} {one.version}", lambda: _artefacts(one, python, scratch, arguments, made))
        if not made:
            return
        table.run("long description", lambda: _rendered(python, made))
        listed = tools.python("import trove_classifiers as t; print('\\n'.join(t.classifiers))")
    for artefact in made:
        _inspect(one, artefact, frozenset(listed.splitlines()), table)
    paths = {artefact.kind: artefact.path for artefact in made}
    if CORE in arguments.extras:
        table.run("sdist: core", lambda: try_extra(scratch, one.name, paths["sdist"], CORE, arguments.torch))
    for extra in arguments.extras:
        table.run(f"wheel: {extra}", partial(try_extra, scratch, one.name, paths["wheel"], extra, arguments.torch))


def _artefacts(
    one: Distribution, python: str, scratch: Path, arguments: argparse.Namespace, made: list[Artefact]
) -> str:
    out = arguments.out.resolve()
    if arguments.built:
        made += built(one, out)
    else:
        for earlier in (*out.glob("*.whl"), *out.glob("*.tar.gz")):  # they would be published, too
            earlier.unlink()
        made += build(one, python, scratch, out)
    return ", ".join(artefact.path.name for artefact in made)


def _inspect(one: Distribution, artefact: Artefact, classifiers: frozenset[str], table: StepTable) -> None:
    size = f"{len(artefact.files)} files, {artefact.megabytes:.1f} MB"
    table.run(f"{artefact.kind}: contents", lambda: require(list(faults(one, artefact)), size))
    found = f"SHA-256 {artefact.digest}"
    table.run(f"{artefact.kind}: metadata", lambda: require(list(metadata_faults(one, artefact, classifiers)), found))


def _rendered(python: str, made: Sequence[Artefact]) -> str:
    words = [python, "-m", "twine", "check", "--strict", *(str(artefact.path) for artefact in made)]
    subprocess.run(words, capture_output=True, text=True, check=True)
    return "renders (twine check --strict)"


def _write_notes(version: str) -> str:
    notes, section = release_notes(ROOT, version)
    (ROOT / NOTES).parent.mkdir(exist_ok=True)
    (ROOT / NOTES).write_text(notes, encoding="utf-8")
    return f"{NOTES}: {len(notes.splitlines())} lines of the section {section}"


def _say_what_is_next(version: str, commit: str, remote: str, refused: Sequence[str]) -> None:
    if refused:
        print(f"A release of {version} would be refused:", *(f"  {line}" for line in refused), sep="\n")
        return
    print(
        f"Next, scripts/release would:\n"
        f"  1. tag the commit {commit[:10]} as v{version}, with {NOTES} as message\n"
        f"  2. push the tag to {remote}; .github/workflows/release.yml then builds, tests the built files, waits for\n"
        "     the approval of the environment `pypi`, publishes, and makes a release with the notes"
    )


def _tag(version: str, commit: str, remote: str) -> int:
    """Tag the commit that was tried and push the tag, which starts the workflow."""
    git(ROOT, "tag", "--annotate", f"v{version}", "--cleanup=verbatim", "--file", str(ROOT / NOTES), commit)
    git(ROOT, "push", remote, f"refs/tags/v{version}")
    print(f"v{version} is pushed to {remote}; its workflow `release` publishes once the environment `pypi` is approved")
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
