"""The tokens view in Chromium: its mask equals the recorded one."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from agentgym_envs.rollout import TokenTrajectory
from agentgym_envs.rollout.token_file import TokenWriter
from agentgym_envs.trajectory import TrajectoryWriter
from tests.viewer.showing import chromium, page_of, serving
from tests.viewer.token_episodes import CODEC, episode

pytestmark = pytest.mark.slow  # the fast browser tests are in test_pages.py

HOSTILE = "<script>document.title='bad'</script>\u202e\u0000\t 👩‍🚀 到<img src=x onerror=alert(1)>"
SHOWN = """() => [...document.querySelectorAll(".segment")].map((segment) => [...segment.querySelectorAll(".tok")]
    .map((token) => [Number(token.dataset.mask), token.classList.contains("prompt")]))"""


def texts(page: Any) -> str:
    """The text of the tokens, without the visible signs for white space."""
    found: str = page.evaluate("""() => [...document.querySelectorAll(".segment .tok")].map((token) => {
        const copy = token.cloneNode(true);
        copy.querySelectorAll(".sign, .part, .odd").forEach((sign) => sign.remove());
        return copy.textContent;
    }).join("")""")
    return found


def without_odd(text: str) -> str:
    return "".join(character for character in text if character not in "\u202e\u0000\u200d")


@pytest.fixture(scope="module")
def browser(episodes: list[list[TokenTrajectory]]) -> Iterator[Any]:  # played first, as Playwright runs an event loop
    with chromium() as made:
        yield made


@pytest.fixture(scope="module")
def episodes() -> list[list[TokenTrajectory]]:
    """By number: with log-probabilities, hostile and without them, two segments, long, without tokens."""
    hostile = replace(episode(HOSTILE, "go", seen=HOSTILE), logprobs=None)
    long = episode(*["a door, a key. " * 30] * 24, seen="You see nothing.\n" * 40)
    first = episode("go", "take the key")
    return [[first], [hostile], [episode("up", "go"), episode("wait", "go")], [long], []]


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory, episodes: list[list[TokenTrajectory]]) -> Iterator[str]:
    path = tmp_path_factory.mktemp("viewer") / "t.jsonl"
    with TrajectoryWriter(path) as writer, TokenWriter(path) as tokens:
        for number, segments in enumerate(episodes):
            trajectory = (segments or episodes[0])[-1].trajectory
            mark = writer.write(replace(trajectory, meta={"policy": str(number)}))
            if segments:
                tokens.write(mark, segments, CODEC)
    with serving(path) as url:
        yield url


@pytest.fixture
def open_tokens(browser: Any, address: str) -> Any:
    def one(number: int, **options: Any) -> Any:
        return page_of(browser, f"{address}#/episode/{number}?tab=tokens", **options)

    return one


def to_tokens(page: Any) -> None:
    page.get_by_role("tab", name="Tokens").click()
    page.locator(".tokens").wait_for()


@pytest.mark.rotating(always=1)
@pytest.mark.parametrize("number", [0, 1, 2])
def test_shown_mask_equals_the_recorded_mask(
    number: int, open_tokens: Any, episodes: list[list[TokenTrajectory]]
) -> None:
    with open_tokens(number) as page:
        to_tokens(page)
        shown = page.evaluate(SHOWN)
        assert len(shown) == len(episodes[number])
        for tokens, segment in zip(shown, episodes[number], strict=True):
            prompt = [[0, True]] * len(segment.prompt_ids)
            assert tokens == prompt + [[mask, False] for mask in segment.assistant_mask]
        answers = page.locator(".segment .tok.answer").count()
        assert answers == sum(sum(segment.assistant_mask) for segment in episodes[number])
        looks = page.evaluate("""() => ["answer", "seen", "prompt"].map((kind) => {
            const look = getComputedStyle(document.querySelector(`.segment .tok.${kind}`));
            return [look.textDecorationLine, look.fontWeight];
        })""")
        assert looks[0] == ["underline", "600"] and looks[1] == looks[2] == ["none", "400"], "not by colour alone"
        ids = [token for segment in episodes[number] for token in [*segment.prompt_ids, *segment.ids]]
        assert texts(page) == without_odd("".join(CODEC.pieces(ids)))
        assert page.title() != "bad" and page.locator(".tokens script, .tokens img").count() == 0


def test_tokens_show_probabilities_counts_and_rewards(open_tokens: Any, episodes: list[list[TokenTrajectory]]) -> None:
    (segment,) = episodes[0]
    known = [p for p, mask in zip(segment.logprobs or [], segment.assistant_mask, strict=True) if mask]
    mean = sum(known) / len(known)
    with open_tokens(0) as page:
        to_tokens(page)
        facts = page.locator(".segment .facts").inner_text()
        assert f"{len(known)} of {len(segment.prompt_ids) + len(segment.ids)} tokens" in facts
        assert f"−{-mean:.3f}".rstrip("0") in facts and f"{math.exp(-mean):.2f}".rstrip("0") in facts
        steps = [page.locator(f".segment .tok.heat{step}").count() for step in range(6)]
        least = [0.9, 0.5, 0.2, 0.05, 0.01, 0.0]
        expected = [next(step for step, share in enumerate(least) if math.exp(p) >= share) for p in known]
        assert steps == [expected.count(step) for step in range(6)] and sum(step > 0 for step in steps) >= 2
        assert page.locator(".segment .flag").all_text_contents() == ["reward +0.25"] * 2
        before = page.evaluate(
            "[...document.querySelectorAll('.segment .flag')].map((f) => f.previousSibling.textContent)"
        )
        assert before == ["<|im_end|>"] * 2, "a reward is at the last token of its answer"
        colour = "getComputedStyle(document.querySelector('.segment .tok.heat1')).backgroundColor"
        heated = page.evaluate(colour)
        page.get_by_role("button", name="Heat").click()
        assert page.evaluate(colour) != heated
        page.get_by_role("button", name="Sampled only").click()
        page.locator(".segment .tok.answer").first.wait_for()  # visible after the block is laid out
        assert not page.locator(".segment .tok.seen").first.is_visible()
        page.get_by_role("button", name="Mark spaces").click()
        # A block without layout has no inner text.
        assert "take·the·key" in (page.locator(".run.answer").last.text_content() or "")


def test_pointer_and_keys_show_token_details(open_tokens: Any, episodes: list[list[TokenTrajectory]]) -> None:
    (segment,) = episodes[0]
    with open_tokens(0) as page:
        to_tokens(page)
        answer = page.locator(".segment .tok.answer")
        index = segment.assistant_mask.index(1) + 1
        answer.nth(1).hover()
        line = page.locator(".token-line")
        text = line.inner_text()
        logprob = (segment.logprobs or [])[index]
        assert f"{segment.ids[index]}" in text and "1, sampled" in text and '"o"' in text
        assert f"−{-logprob:.4f}".rstrip("0") in text and f"{100 * math.exp(logprob):.1f} %" in text
        page.locator(".token-text").focus()
        page.keyboard.press("End")
        assert '"<|im_end|>"' in line.inner_text() and "+0.25" in line.inner_text()
        page.keyboard.press("Home")
        assert "of the prompt" in line.inner_text() and "PROBABILITY" not in line.inner_text().upper()
        page.keyboard.press("ArrowRight")
        assert page.locator(".segment .tok.chosen").get_attribute("data-index") == "1"
        page.get_by_text("The tokens as a table").click()
        rows = page.locator(".token-table tbody tr")
        rows.first.wait_for()
        assert rows.count() == len(segment.prompt_ids) + len(segment.ids)
        cells = rows.nth(len(segment.prompt_ids) + index).locator("td").all_inner_texts()
        assert cells[:3] == ['"o"', str(segment.ids[index]), "1"]


def test_long_episode_is_complete_but_laid_out_lazily(open_tokens: Any, episodes: list[list[TokenTrajectory]]) -> None:
    (segment,) = episodes[3]
    total = len(segment.prompt_ids) + len(segment.ids)
    assert total > 8_000
    with open_tokens(3) as page:
        to_tokens(page)
        page.locator(".segment .tok").nth(total - 1).wait_for(state="attached")
        assert page.locator(".segment .tok").count() == total
        assert page.locator(".segment .tok.answer").count() == sum(segment.assistant_mask)
        lines = page.locator(".run.seen").first.locator(".block").all_text_contents()
        assert len(lines) > 1 and all(text.rstrip("\n").endswith("↵") for text in lines[:-1]), "no line is broken"
        assert page.evaluate("getComputedStyle(document.querySelector('.block')).contentVisibility") == "auto"


def test_selected_turn_is_scrolled_into_view(open_tokens: Any) -> None:
    with open_tokens(3) as page:
        page.locator(".run.answer").first.wait_for()
        page.keyboard.press("End")
        page.keyboard.press("ArrowLeft")
        positions = """() => {
            const last = [...document.querySelectorAll(".run.answer")].pop();
            const { top } = last.getBoundingClientRect();
            return [last.classList.contains("now") && top > 0 && top < innerHeight, top];
        }"""
        before = page.evaluate(positions)
        for _ in range(300):  # until it is in view and the smooth scrolling ends
            page.wait_for_timeout(200)
            now = page.evaluate(positions)
            if now[0] and now == before:
                break
            before = now
        assert now[0] and page.locator(".run.answer.now").count() == 1
    with open_tokens(2) as page:  # the answers may belong to two episodes, so they are not assigned to turns
        page.locator(".run.answer").first.wait_for()
        page.keyboard.press("ArrowRight")
        assert page.locator(".run.answer.now").count() == 0


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_tokens_fit_a_phone_with_sufficient_contrast(scheme: str, open_tokens: Any) -> None:
    with open_tokens(0, viewport={"width": 390, "height": 800}, color_scheme=scheme) as page:
        to_tokens(page)
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        pairs = page.evaluate("""() => [0, 1, 2, 3, 4, 5].map((step) => {
            const look = getComputedStyle(document.querySelector(`.heat-legend .heat${step}`));
            return [look.color, look.backgroundColor];
        })""")
        assert all(contrast(*pair) >= 4.5 for pair in pairs), pairs


def contrast(one: str, other: str) -> float:
    """The WCAG contrast of two colours in the form `rgb(r, g, b)`."""

    def light(colour: str) -> float:
        parts = [int(part) / 255 for part in colour[4:-1].split(",")]
        linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2] + 0.05

    high, low = sorted([light(one), light(other)], reverse=True)
    return high / low
