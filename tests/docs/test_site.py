"""The site builds without a warning, and what the pages link to, show and quote is there."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import gymnasium as gym
import pytest

import agentgym_envs  # noqa: F401  (registers the ids)
from tests.docs.browser import found, phone, served, too_wide
from tests.docs.snippets import PAGES, ROOT

_LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
_CODE = re.compile(r"^ *(```+).*?^ *\1 *$|`[^`\n]+`", re.M | re.S)
_TRANSCRIPT = re.compile(r"^<!-- transcript (\S+) (\S+) -->\n```text\n(.*?)^```", re.M | re.S)
FILES = (*PAGES, "CHANGELOG.md")
CHEAP = ("TextCraft", "BabyAI")
GENERATED = ("reference/", "about/")  # pages that the build makes; it checks the links to them


def links(page: str) -> Iterator[str]:
    yield from _LINK.findall(_CODE.sub("", (ROOT / page).read_text()))


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as GitHub names them."""
    found: list[str] = []
    for title in re.findall(
        r"^#+ (.+)$", re.sub(r"^ *(```+).*?^ *\1 *$", "", page.read_text(), flags=re.M | re.S), re.M
    ):
        plain = re.sub(r"[^\w\- ]", "", re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", title).lower()).replace(" ", "-")
        found.append(plain if plain not in found else f"{plain}-{found.count(plain)}")
    return set(found)


@pytest.mark.parametrize("page", FILES)
def test_links_to_files_and_anchors_exist(page: str) -> None:
    for link in links(page):
        parts = urlsplit(link)
        if parts.scheme or parts.path.startswith(GENERATED):
            continue
        target = (ROOT / page).parent / parts.path if parts.path else ROOT / page
        assert target.exists(), f"{page} links to {link}, which is not there"
        if parts.fragment and target.suffix == ".md":
            assert parts.fragment in anchors(target), f"{page} links to {link}; anchors: {sorted(anchors(target))}"


@pytest.mark.parametrize("page", FILES)
def test_links_to_other_sites_are_well_formed(page: str) -> None:
    for link in links(page):
        parts = urlsplit(link)
        if parts.scheme:
            assert parts.scheme in ("http", "https") and "." in parts.netloc, f"{page}: {link}"


def test_pages_match_the_docstrings_and_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "scripts" / "site"))
    from sections import fill_in  # type: ignore[import-not-found]

    marks = ("<!-- docstring ", "<!-- validation checks -->", "<!-- cheat ", "<!-- extras -->", "<!-- leaderboard -->")
    pages = [page for page in PAGES if any(mark in (ROOT / page).read_text() for mark in marks)]
    assert len(pages) >= 8
    for page in pages:
        text = (ROOT / page).read_text()
        assert fill_in(text) == text, f"{page} is not what the docstrings say: run python scripts/site/sections.py"


def transcripts() -> Iterator[Any]:
    for page in PAGES:
        for env_id, task, text in _TRANSCRIPT.findall((ROOT / page).read_text()):
            cheap = any(name in env_id for name in CHEAP)
            yield pytest.param(env_id, task, text, id=task, marks=[] if cheap else [pytest.mark.slow])


@pytest.mark.parametrize(("env_id", "task", "text"), transcripts())
def test_transcripts_match_the_output(env_id: str, task: str, text: str) -> None:
    env = gym.make(env_id)
    try:
        observation, info = env.reset(seed=0, options={"task": task})
        first, *turns = re.split(r"^> ", text, flags=re.M)
        assert matches(first, observation)
        for turn in turns:
            action, _, reply = turn.partition("\n")
            observation, _, _, _, info = env.step(action)
            assert matches(re.sub(r"^\[score .*\]$", "", reply, flags=re.M), observation), (
                f"after {action}:\n{observation}"
            )
        shown = re.search(r"^\[score (.*)\]$", text, re.M)
        assert shown is not None and info["score"] == pytest.approx(float(shown[1]), abs=5e-4)
    finally:
        env.close()


def matches(shown: str, observation: str) -> bool:
    """True if a text matches the output; `...` matches anything, and line breaks may differ."""
    pieces = [re.escape(" ".join(piece.split())) for piece in shown.split("...")]
    return re.fullmatch(r"\s*.*?\s*".join(pieces), " ".join(observation.split()), re.S) is not None


PLAIN = """
import io, os, sys
from mkdocs.commands.build import build
from mkdocs.config import load_config

settings = open("mkdocs.yml", encoding="utf-8").read()
assert settings.count("  - search\\n") == 1
plain = io.BytesIO(settings.replace("  - search\\n", "").encode())
plain.name = os.path.abspath("mkdocs.yml")
build(load_config(plain, theme="mkdocs", strict=True, site_dir=sys.argv[1]))
"""
"""Builds the pages without what gives no warnings: the theme and the index for searches take half of the time."""
SEARCHES = {
    "install": "install",
    "pip install": "install",
    "cheat sheet": "cheatsheet",
    "leaderboard": "leaderboard",
    "wandb": "logging",
    "tensorboard": "logging",
    "colab": "notebooks",
    "confidence interval": "metrics",
    "vllm": "training-one-machine",
    "miniwob": "webarena",
}
"""Searches of readers, and the page that each one has to find first."""
WITH_TABLES = (".", "architecture", "benchmarks", "cheatsheet", "install", "leaderboard", "reference/commands", "tasks")
WAYS = {
    "plain": ["-c", PLAIN],
    "as published": ["-m", "mkdocs", "build", "--strict", "--site-dir"],
}


@pytest.mark.slow
@pytest.mark.parametrize("way", [pytest.param("as published", marks=pytest.mark.rotating), "plain"])
def test_the_site_builds_without_a_warning(way: str, tmp_path: Path) -> None:
    pytest.importorskip("mkdocs", reason="the extra docs is not installed")
    done = subprocess.run(
        [sys.executable, *WAYS[way], str(tmp_path / "site")],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=900,
        env=os.environ | {"NO_MKDOCS_2_WARNING": "1"},
    )
    assert done.returncode == 0, done.stderr[-4000:]
    for page in ("index.html", "reference/commands/index.html", "reference/agentgym_envs/core/index.html"):
        assert (tmp_path / "site" / page).exists()
    if way == "as published":
        check_in_browser(tmp_path / "site")


def check_in_browser(site: Path) -> None:
    """Searches find their page first, no page is wider than a phone, and nothing comes from another host."""
    with served(site) as address, phone(address) as (page, outside):
        for words, best in SEARCHES.items():
            assert found(page, address, words)[0] == f"/{best}/", words
        wide = {name: too_wide(page, f"{address}/{name}/") for name in WITH_TABLES}
        assert not any(pixels > 0 for pixels in wide.values()), wide
        assert outside == []
