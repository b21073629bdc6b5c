"""Search-R1's single-tool form, byte for byte: texts that models were trained on must not change."""

import hashlib
import json
from collections.abc import Sequence
from typing import Any

import pytest

from agentgym_envs.search.retrieval.base import Hit, Retriever
from tests.search.conftest import PASSAGES, Make

ACTIONS = (
    "hm",
    "<think>Where is Lima?</think>\n<search>Lima capital</search>",
    "<search> </search>",
    "<think>never closed <search>x</search>",
    "<search>Quito Ecuador</search>",
    "<search>zzz</search>",
    "<open>lima</open>",
    "<answer>Huascarán mountain</answer>",
    "<answer>huascaran</answer>",
)
GOLDEN = {
    "bare": "a6441ca43662c8d7",
    "search-r1": "cee36d86cb42d6c9",
    "plain": "ba3ea4b97cf6e22b",
    "skyrl": "ece430f60cf81767",
    "verl": "e86252614679798c",
    "react": "048c658253247f7f",
    "tool_call": "b73702ff958080d9",
    "tools": "c7490319331dacd7",
    "retry": "13133e7cc3c16e83",
}


class ByWords(Retriever):
    """Passages that share words with the query, in the order of the corpus: no ranking that could change."""

    def search(self, queries: Sequence[str], k: int) -> list[list[Hit]]:
        wanted = [set(query.lower().split()) for query in queries]
        return [[Hit(p, 1.0) for p in PASSAGES if words & set(p.contents.lower().split())][:k] for words in wanted]

    def describe(self) -> dict[str, Any]:
        return {"engine": "by words"}


def transcript(make: Make, **options: Any) -> str:
    """The hash of the instructions and of everything that an episode returns."""
    env = make(retriever=ByWords(), index=None, **options)
    seen: list[Any] = [env.instructions, env.reset(seed=0, options={"task": "toy/0"})]
    for action in ACTIONS:
        bare = env.grammar.name == "bare" or not action.endswith(("</search>", "</answer>")) or "think" in action
        try:
            written = action if bare else env.grammar.format(action)
        except ValueError:
            written = action
        seen.append(env.step(written))
        if seen[-1][2]:
            break
    return hashlib.sha256(json.dumps(seen, sort_keys=True).encode()).hexdigest()[:16]


CASES: dict[str, dict[str, Any]] = {
    "bare": {},
    "search-r1": {"format": "search-r1", "compat": "search-r1"},
    "plain": {"format": "plain", "top_k": 1},
    "skyrl": {"format": "skyrl", "max_chars": 40},
    "verl": {"format": "verl", "metric": "f1", "format_reward": 0.2},
    "react": {"grammar": "react"},
    "tool_call": {"grammar": "tool_call"},
    "tools": {"grammar": "tools", "metric": "em_plus"},
}


@pytest.mark.parametrize("name", CASES)
def test_the_default_form_is_unchanged(make: Make, name: str) -> None:
    assert transcript(make, **CASES[name]) == GOLDEN[name]


def test_with_retry_the_form_is_unchanged(make_retry: Make) -> None:
    assert transcript(make_retry) == GOLDEN["retry"]
