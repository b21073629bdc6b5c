"""Observations with an image: a mixin for environments, and the text of any observation."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from agentgym_envs.core import MAX_OBSERVATION_CHARS, TextEnv
from agentgym_envs.errors import EnvError, missing_extra
from agentgym_envs.spaces import Utf8Text

Pixels = NDArray[np.uint8]


class ImageObservations(TextEnv):
    """A mixin for a `TextEnv` whose observations are `{"text": str, "image": (height, width, 3) uint8}`.

    The scenario puts the image, encoded as PNG or JPEG, into `info["screenshot"]`; it stays there. Records, rollouts
    and servers use the text and the encoded image. Without an image, as after an infrastructure error, it is black.
    """

    image_size: tuple[int, int] = (720, 1280)
    """Height and width of the image, in pixels."""
    image: bytes | None = None
    """The image of the last observation, encoded as PNG or JPEG."""

    def __init__(self, *args: Any, image_size: tuple[int, int] | None = None, **options: Any) -> None:
        """`image_size` replaces that of the class; the other arguments are the scenario's."""
        check_pillow()
        self.image_size = image_size or self.image_size
        super().__init__(*args, **options)
        image = spaces.Box(0, 255, (*self.image_size, 3), np.uint8)
        self.observation_space = spaces.Dict(  # type: ignore[assignment]
            {"text": Utf8Text(MAX_OBSERVATION_CHARS), "image": image}
        )

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Begin an episode; see `TextEnv.reset`."""
        text, info = super().reset(seed=seed, options=options)
        return self._with_image(text, info), info

    async def areset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Reset without blocking the event loop."""
        text, info = await super().areset(seed=seed, options=options)
        return self._with_image(text, info), info

    def step(self, action: str) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Take one action; see `TextEnv.step`."""
        text, *rest, info = super().step(action)
        return (self._with_image(text, info), *rest, info)  # type: ignore[return-value]

    async def astep(self, action: str) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Step without blocking the event loop."""
        text, *rest, info = await super().astep(action)
        return (self._with_image(text, info), *rest, info)  # type: ignore[return-value]

    def _with_image(self, observation: Any, info: dict[str, Any]) -> dict[str, Any]:
        """The observation with its image; unchanged if it has one already."""
        if isinstance(observation, dict):
            return observation
        self.image = encoded = info.get("screenshot")
        image = np.zeros((*self.image_size, 3), np.uint8) if encoded is None else decode(encoded)
        if image.shape[:2] != self.image_size:
            raise EnvError(f"the image has {image.shape[:2]} rows and columns of pixels, not {self.image_size}")
        return {"text": observation, "image": image}


def text_of(observation: Any) -> str:
    """The text of an observation: itself, or that of an observation with an image."""
    text: str = observation["text"] if isinstance(observation, dict) else observation
    return text


def decode(image: bytes) -> Pixels:
    """Decode a PNG or JPEG to an array (height, width, 3). Raises EnvError if it is neither."""
    from PIL import Image, UnidentifiedImageError

    try:
        with Image.open(io.BytesIO(image), formats=("PNG", "JPEG")) as opened:
            return np.asarray(opened.convert("RGB"))
    except (UnidentifiedImageError, OSError, ValueError) as error:
        raise EnvError(f"the image cannot be decoded: {error}") from None


def check_pillow(what: str = "an observation with an image", extra: str = "pixels") -> None:
    """Raise MissingExtra, which names a feature and an extra, if Pillow is not installed."""
    try:
        import PIL.Image  # noqa: F401
    except ModuleNotFoundError:
        raise missing_extra(what, "pillow", extra) from None
