"""The server of `--policy openai:MODEL`: its address, key, rate and recording, and the price of its tokens."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlsplit

from agentgym_envs.errors import UsageError

if TYPE_CHECKING:
    from agentgym_envs.model_requests import Pace
    from agentgym_envs.rollout.chat_cassette import ChatCassette

OPENAI_URL = "https://api.openai.com/v1"
URL_VARIABLE, KEY_VARIABLE = "OPENAI_BASE_URL", "OPENAI_API_KEY"
_PRICE = "the dollars per million tokens that the model reads and writes, as in 2.5,10"


class Price(NamedTuple):
    """US dollars per million tokens that the model reads and writes."""

    input: float
    output: float

    def cost(self, prompt_tokens: int, answer_tokens: int) -> float:
        """The dollars for these tokens, in millionths."""
        return round((self.input * prompt_tokens + self.output * answer_tokens) / 1e6, 6)


@dataclass(frozen=True, slots=True)
class ModelServer:
    """The server of a model. `pace` spaces and counts the requests; `cassette` records or replays them."""

    model: str
    url: str
    key: str | None
    pace: Pace
    cassette: ChatCassette | None

    @property
    def replays(self) -> bool:
        """True if no request is sent."""
        return self.cassette is not None and self.cassette.replay


def server_url(base_url: str | None) -> str:
    """The address of --base-url, of the variable OPENAI_BASE_URL, or of OpenAI. Raises UsageError for a bad one."""
    source, url = "--base-url", base_url
    if url is None:
        source, url = f"${URL_VARIABLE}", os.environ.get(URL_VARIABLE, "").strip() or OPENAI_URL
    if not url.startswith(("http://", "https://")):
        raise UsageError(f"{source} must begin with http:// or https://, and {url!r} does not")
    return url


def open_server(
    model: str, url: str, key_variable: str, cassette: Path | None, replay: bool, requests_per_minute: float | None
) -> ModelServer:
    """Read the key and open the recording. Connects at the first request.

    Raises UsageError for a missing key of OpenAI, and for a recording that cannot be used.
    """
    from agentgym_envs.model_requests import Pace
    from agentgym_envs.rollout.chat_cassette import ChatCassette

    if replay and cassette is None:
        raise UsageError("--replay answers from a recording: give the file with --cassette FILE")
    tape = None if cassette is None else ChatCassette(cassette, replay=replay)
    key = os.environ.get(key_variable, "").strip() or None
    if key is None and not replay and urlsplit(url).hostname == urlsplit(OPENAI_URL).hostname:
        raise UsageError(
            f"--policy openai:MODEL asks {url}, which needs a key: set {key_variable}, or give the address of another "
            f"server with --base-url or {URL_VARIABLE}, such as http://127.0.0.1:8000/v1"
        )
    pace = Pace(requests_per_minute, "--requests-per-minute slows the requests down")
    return ModelServer(model, url, key, pace, tape)


def read_price(text: str | None, model: str) -> Price | None:
    """Read --price: two numbers, or a JSON file of {"MODEL": {"input": 2.5, "output": 10}}. Raises UsageError."""
    if text is None:
        return None
    parts = text.split(",")
    if len(parts) == 2 and not Path(text).is_file():
        return _price(parts, f"--price {text}")
    try:
        table = json.loads(Path(text).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise UsageError(
            f"--price takes {_PRICE}, or a JSON file of models, and {text!r} is neither: {error}"
        ) from None
    row = table.get(model) if isinstance(table, Mapping) else None
    if not isinstance(row, Mapping) or not {"input", "output"} <= row.keys():
        raise UsageError(
            f'--price {text} has no price of {model!r}, as in {{"{model}": {{"input": 2.5, "output": 10}}}}'
        )
    return _price([row["input"], row["output"]], f"--price {text}")


def _price(numbers: list[Any], source: str) -> Price:
    try:
        price = Price(*map(float, numbers))
    except (ValueError, TypeError):
        price = Price(math.nan, math.nan)
    if not all(math.isfinite(number) and number >= 0 for number in price):
        raise UsageError(f"{source} must be {_PRICE}")
    return price
