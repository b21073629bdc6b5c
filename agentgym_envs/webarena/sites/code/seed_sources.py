"""The files of projects, generated from template sources.

`sources/` has one file per language, with sections that start with "%% kind". In the sections, gizmo, widget, cogwheel
and sprocket are placeholders for two things and two parts of a project, 1001 and 2002 for a small and a large number,
and $CAPITALS$ for facts about the project.
"""

from __future__ import annotations

import datetime
import random
import re
from functools import lru_cache
from importlib.resources import files

from agentgym_envs.webarena.sites.code import wordlists_history
from agentgym_envs.webarena.sites.code.seed_projects import Draft
from agentgym_envs.webarena.sites.code.seed_tools import TableRows, Words, fill_in

_LAYOUTS = {
    "python": ("pkgname/{}.py", "tests/test_{}.py", "pkgname/__init__.py", "pkgname/cli.py"),
    "javascript": ("src/{}.js", "test/{}.test.js", "src/index.js", "src/main.js"),
    "go": ("internal/{0}/{0}.go", "internal/{0}/{0}_test.go", "internal/version/version.go", "main.go"),
    "rust": ("src/{}.rs", "tests/{}.rs", "src/lib.rs", "src/main.rs"),
    "c": ("src/{}.c", "tests/{}.c", "include/pkgname.h", "src/main.c"),
}
"""Paths of modules and tests, of the file with the version, and of the main program."""
_COMMANDS = {
    "python": ("pip install proj-slug", "python -m pytest", "python -m checks .", "Python 3.{}", (10, 14)),
    "javascript": ("npm install proj-slug", "npm test", "npm run lint", "Node {}", (18, 24)),
    "go": ("go install code.test/ns-path/proj-slug@latest", "go test ./...", "go vet ./...", "Go 1.{}", (20, 26)),
    "rust": ("cargo install proj-slug", "cargo test", "cargo clippy", "Rust 1.{}", (74, 90)),
    "c": ("make && sudo make install", "make check", "make clean all", "a compiler for C11", (1, 1)),
}
"""Commands to install, test and check; the requirement, and the range of its version."""
_LEADS = (
    "It deals with gizmos and widgets, and with little else. What it keeps, it keeps in plain files.",
    "We wrote it because every other program wanted an account. This one wants your gizmos, and gives them back.",
    "It began as a script for one evening, and now looks after a few thousand gizmos for people we have never met.",
    "The aim: whoever understands gizmos understands the program. If the cogwheel surprises you, that is a bug.",
)
_LARGE = (16, 20, 24, 32, 48, 50, 64, 100, 128, 200, 256, 500)
_FACT = re.compile(r"\$([A-Z-]+)\$")
_WORD = re.compile(
    r"(\b[Aa] )?(gizmo|widget|cogwheel|sprocket|Gizmo|Widget|Cogwheel|Sprocket|GIZMO|WIDGET|COGWHEEL|SPROCKET"
    r"|2002|1001|pkgname|proj-slug|ns-path)"
)
_WEEKDAYS = ("the first Monday of the month", "Tuesdays", "Wednesdays", "Thursdays", "the last Friday of the month")


@lru_cache(maxsize=8)
def sections(name: str) -> dict[str, tuple[str, ...]]:
    """Return the sections of a file in `sources/` by kind."""
    text = files(f"{__package__}.sources").joinpath(f"{name}.txt").read_text(encoding="utf-8")
    by_kind: dict[str, tuple[str, ...]] = {}
    for section in text.split("%% ")[1:]:
        kind, _, body = section.partition("\n")
        by_kind[kind] = (*by_kind.get(kind, ()), body)
    return by_kind


def add_files(rows: TableRows, rng: random.Random, draft: Draft) -> None:
    """Add the files at the head of a project's default branch."""
    draft.facts = _facts(rows, rng, draft)
    for path, text in sorted(_texts(rng, draft).items()):
        draft.blobs[path] = rows.add("blobs", content=text)


def module_path(draft: Draft, part: str) -> str:
    """Return the path of a part's module."""
    return _named(_LAYOUTS[draft.idea.language][0].format(part), draft)


def test_path(draft: Draft, part: str) -> str:
    """Return the path of a part's tests; not every part has tests."""
    return _named(_LAYOUTS[draft.idea.language][1].format(part), draft)


def one_more(rng: random.Random, draft: Draft, part: str, text: str) -> str:
    """Return the text of a part's module with one more section."""
    pieces = [_render(rng, draft, part, piece) for piece in sections(draft.idea.language)["piece"]]
    fresh = [piece for piece in pieces if piece.splitlines()[0] not in text]
    gap = "\n\n" if draft.idea.language == "python" else "\n"
    return text + gap + rng.choice(fresh or pieces)


def _facts(rows: TableRows, rng: random.Random, draft: Draft) -> Words:
    """Return facts about a project by placeholder."""
    account = rows.row("accounts", draft.owner)
    install, test, check, needs, minors = _COMMANDS[draft.idea.language]
    minor = str(rng.randint(*minors))
    return {
        "INSTALL": install, "TEST": test, "CHECK": check, "NEEDS": needs.format(minor), "MINOR": minor,
        "MAINTAINER": account["name"], "USER": account["user"], "MAIL": account["email"],
        "PROJECT": draft.name, "ONE-LINE": draft.idea.summary, "LICENCE": draft.licence, "LEAD": rng.choice(_LEADS),
        "VERSION": draft.version(), "YEAR": str(draft.created.year), "PORT": str(rng.randint(3000, 9400)),
        "TIMEOUT": str(rng.choice((3, 5, 8, 10, 15, 20, 30, 45, 60, 90))), "RETRIES": str(rng.randint(2, 9)),
        "KEEP": str(rng.choice((7, 14, 21, 28, 30, 60, 90, 180, 365))), "REVIEW": str(rng.randint(2, 9)),
        "VALUE": rng.choice(("true", "false")), "WEEKDAY": rng.choice(_WEEKDAYS), "HOUR": f"{rng.randint(16, 20)}:00",
        "OPTION": f"{rng.choice(('strict', 'skip', 'keep', 'log'))}_{rng.choice(draft.idea.things)}s",
        "PARTS": "\n".join(f"- `{part}`: {_describe_part(rng, draft, part)}" for part in draft.idea.parts),
    }  # fmt: skip


def _describe_part(rng: random.Random, draft: Draft, part: str) -> str:
    thing, other = rng.sample(draft.idea.things, 2)
    return rng.choice((
        f"what happens to {thing}s before anybody sees them", f"takes {thing}s and hands on {other}s",
        f"everything about {thing}s", f"brings {thing}s and {other}s together", f"the {part} of {thing}s",
    ))  # fmt: skip


def _texts(rng: random.Random, draft: Draft) -> dict[str, str]:
    language = draft.idea.language
    own, common = sections(language), sections("common")
    _, _, version, main = _LAYOUTS[language]
    parts = list(draft.idea.parts) if draft.weight > 0.12 else rng.sample(draft.idea.parts, 4)
    manifest = next(kind for kind in own if kind.startswith("manifest"))
    texts = {
        "README.md": common["readme"][0], "LICENSE": common["licence"][0], ".pipeline.yml": common["pipeline"][0],
        ".gitignore": own["ignore"][0], manifest.split()[1]: own[manifest][0], version: own["init"][0],
        main: own["main"][0], "config/default.yaml": common["configuration"][0], "docs/guide.md": common["guide"][0],
    }  # fmt: skip
    if draft.weight > 0.14:
        texts["CONTRIBUTING.md"] = common["contributing"][0]
        texts["scripts/release.sh"] = common["script"][0]
    done = {_named(path, draft): _render(rng, draft, parts[0], text) for path, text in texts.items()}
    for part in parts:
        done[module_path(draft, part)] = _module(rng, draft, part)
    for part in parts[: 3 if draft.weight > 0.14 else 1]:
        done[test_path(draft, part)] = _render(rng, draft, part, own["test"][0])
    return done | {"CHANGELOG.md": _changelog(rng, draft)}


def _module(rng: random.Random, draft: Draft, part: str) -> str:
    own = sections(draft.idea.language)
    order = rng.sample(range(len(own["piece"])), rng.choice((2, 2, 3, 3, 4)))
    pieces = [rng.choice(own["head"]), *(own["piece"][index] for index in sorted(order))]
    return _render(rng, draft, part, ("\n\n" if draft.idea.language == "python" else "\n").join(pieces))


def _changelog(rng: random.Random, draft: Draft) -> str:
    lines = ["# Changes"]
    for moment, version in reversed(draft.releases):
        lines += [f"\n## {version} ({moment.date().isoformat()})\n", release_notes(rng, draft, moment)]
    return "\n".join(lines) + "\n"


def release_notes(rng: random.Random, draft: Draft, moment: datetime.datetime) -> str:
    """Return the notes of a release as a list."""
    notes = rng.sample(wordlists_history.NOTES, rng.randint(2, 4))
    return "\n".join(f"- {fill_in(note, draft.words(rng, moment))}" for note in notes)


def _named(path: str, draft: Draft) -> str:
    return path.replace("pkgname", draft.slug.replace("-", "_"))


def _render(rng: random.Random, draft: Draft, part: str, text: str) -> str:
    """Fill in the placeholders of a source."""
    index = draft.idea.parts.index(part)
    thing, other = draft.idea.things[index], draft.idea.things[index - rng.randint(1, 4)]
    plain = {"gizmo": thing, "widget": other, "cogwheel": part, "sprocket": draft.idea.parts[index - 1]}
    words = {key: word for old, new in plain.items() for key, word in _cases(old, new).items()}
    words |= {"2002": str(rng.choice(_LARGE)), "1001": rng.choice("2345678")}
    words |= {"pkgname": draft.slug.replace("-", "_"), "proj-slug": draft.slug, "ns-path": draft.path}
    text = _FACT.sub(lambda match: draft.facts[match[1]] if match[1] != "PICK" else str(rng.randint(2, 8)), text)
    return _WORD.sub(lambda match: _article(match[1], words[match[2]]) + words[match[2]], text)


def _cases(old: str, new: str) -> Words:
    return {old: new, old.capitalize(): new.capitalize(), old.upper(): new.upper()}


def _article(article: str | None, word: str) -> str:
    if not article:
        return ""
    return f"{article[0]}n " if word[0] in "aeio" else article
