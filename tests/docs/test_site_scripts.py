"""The parts of the site's build: flow charts, the address of the repository, the drawing of episodes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any
from xml.etree import ElementTree

import pytest

from tests.docs.snippets import ROOT

CHART = 'flowchart BT\n  a["one & two"] --> b\n  a --> c["three"]\n  b --> c\n'


@pytest.fixture(autouse=True)
def site_scripts(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.syspath_prepend(str(ROOT / "scripts" / "site"))
    monkeypatch.delenv("AGENTGYM_REPOSITORY", raising=False)
    yield


def test_a_flow_chart_puts_a_box_above_all_that_point_to_it() -> None:
    from flowchart import draw  # type: ignore[import-not-found]

    svg = ElementTree.fromstring(draw(CHART))
    boxes = {text.text: float(text.get("y", 0)) for text in svg.iter("{http://www.w3.org/2000/svg}text")}
    assert boxes["three"] < boxes["b"] < boxes["one & two"]
    assert svg.get("aria-label") == "one & two to b; one & two to three; b to three"


@pytest.mark.parametrize("chart", ["flowchart LR\n a --> b", "flowchart BT\n a --- b", "flowchart BT\n a --> b & c"])
def test_a_flow_chart_in_another_language_is_refused(chart: str) -> None:
    from flowchart import draw

    with pytest.raises(ValueError, match=r"flow ?chart"):
        draw(chart)


def test_the_address_takes_the_place_of_its_placeholder(monkeypatch: pytest.MonkeyPatch) -> None:
    import repository  # type: ignore[import-not-found]

    line = "git clone REPOSITORY_URL agentgym-envs"
    assert repository.with_address(line) == line or repository.address()
    monkeypatch.setenv("AGENTGYM_REPOSITORY", "https://github.com/someone/envs.git")
    assert repository.with_address(line) == "git clone https://github.com/someone/envs agentgym-envs"
    colab = "https://colab.research.google.com/github/someone/envs/blob/main/docs/notebooks/train.ipynb"
    assert repository.colab_link("train") == colab


def test_an_animation_shows_every_frame_in_turn_and_the_last_one_at_rest() -> None:
    from gallery import Picture, animation  # type: ignore[import-not-found]

    pictures = [Picture(f"seen {number} <b>\n› act & wait", number / 2) for number in range(3)]
    text = animation("Env", "the goal", pictures)
    svg = ElementTree.fromstring(text)
    assert len([group for group in svg if group.get("class", "").startswith("f ")]) == 3
    shown = [float(start) for start in re.findall(r"(\d+\.\d\d)%\{opacity:1\}", text)]
    hidden = [float(end) for end in re.findall(r"(\d+\.\d\d)%\{opacity:0\}", text)]
    assert shown == sorted(shown) and shown[0] == 0 and hidden == shown[1:]
    assert "prefers-reduced-motion" in text and ".f2{opacity:1}" in text


def test_no_page_or_style_of_the_site_names_another_host() -> None:
    files: list[Any] = [ROOT / "docs/site.css", *(ROOT / "scripts/site/theme").rglob("*.html")]
    files += [*(ROOT / "docs/assets").glob("*.svg"), *(ROOT / "docs/gallery").glob("*.svg")]
    for file in files:
        text = file.read_text(encoding="utf-8").replace("http://www.w3.org/2000/svg", "")
        assert not re.search(r"(?:src|href|url)\W{1,3}(?:https?:)?//", text), file
