"""Web environments whose observations have a screenshot: `WebArenaPixelsEnv` and the mixin behind it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, get_args

from agentgym_envs.errors import NoOracle, UsageError
from agentgym_envs.grammar import ActionGrammar
from agentgym_envs.image_observations import ImageObservations
from agentgym_envs.webarena.actions import ALL_FORMS, COORDINATE_FORMS, CommandForm
from agentgym_envs.webarena.base_env import WebEnv
from agentgym_envs.webarena.browser.session import BrowserSession
from agentgym_envs.webarena.browser.view import PageView
from agentgym_envs.webarena.env import WebArenaEnv
from agentgym_envs.webarena.grammars import web_grammars
from agentgym_envs.webarena.marks import draw_marks, marked
from agentgym_envs.webarena.miniwob.env import MiniWoBEnv

Observation = Literal["screenshot", "som", "both"]
_BY_ID = frozenset({"click", "type", "hover"})
_SHOWS = {
    "screenshot": "Each observation has a screenshot of the window instead of the tree: name points of it by pixels.",
    "som": "Each observation has a screenshot of the window. The elements that take actions are framed in it, and the "
    "number at a frame is the element's id; the text lists these elements only, not the whole tree.",
    "both": "Each observation also has a screenshot of the window.",
}


class PixelEnv(ImageObservations, WebEnv):
    """A mixin for a web environment whose observations have a screenshot.

    An observation is `{"text": str, "image": (720, 1280, 3) uint8}`. `info["screenshot"]` is the same image, encoded,
    and `info["boxes"]` has the boxes of the elements in it by their ids. Marks are drawn here, not in the page.
    """

    remote_options = WebEnv.remote_options - {"record_screenshots"} | {"observation", "coordinates"}

    def __init__(self, *, observation: Observation = "som", coordinates: bool | None = None, **options: Any) -> None:
        """Make the environment.

        Args:
            observation: "screenshot" (no tree and no ids), "som" (a screenshot with set-of-marks) or "both" (the tree,
                and a screenshot without marks).
            coordinates: also accept `click_xy`, `hover_xy` and `keyboard_type`; by default only with "screenshot",
                where they replace the actions by id.
            **options: arguments of the environment without screenshots.

        Raises:
            UsageError: an invalid argument. MissingExtra: Pillow is not installed.
        """
        if observation not in get_args(Observation):
            raise UsageError(f"observation is one of {', '.join(get_args(Observation))}, got {observation!r}")
        if coordinates not in (None, True, False):
            raise UsageError(f"coordinates is True, False or None, got {coordinates!r}")
        if coordinates is False and observation == "screenshot":
            raise UsageError("observation='screenshot' shows no ids, so it needs the actions by coordinates")
        self.observation: Observation = observation
        self.forms = _forms(self.forms, observation, coordinates)  # type: ignore[misc]
        self.grammars = web_grammars(self.forms)
        super().__init__(record_screenshots=True, **options)
        self.rules = f"{self.rules}\n\n{_SHOWS[observation]}"

    @classmethod
    def grammars_for(cls, options: Mapping[str, Any]) -> Mapping[str, Callable[[], ActionGrammar]]:
        """The grammars of an environment with these arguments."""
        observation, coordinates = options.get("observation", "som"), options.get("coordinates")
        return web_grammars(_forms(cls.forms, observation, coordinates))

    async def _take_picture(self, session: BrowserSession) -> None:
        await super()._take_picture(session)
        if self.observation == "som" and session.picture is not None:
            view = session.view
            boxes = {one.id: view.boxes[one.id] for one in marked(view) if one.id is not None}
            assert self._image_format is not None
            session.picture = await asyncio.to_thread(draw_marks, session.picture, boxes, self._image_format)

    def _page_text(self, view: PageView) -> str:
        if self.observation == "screenshot":
            return "... the page is in the screenshot"
        if self.observation == "both":
            return view.tree
        ids = {one.id for one in marked(view)}
        lines = [line.lstrip("\t") for line in view.tree.split("\n")]
        return "\n".join(line for line in lines if _id_of(line) in ids) or "... no element takes actions"

    def _plan(self) -> Sequence[str]:
        if self.observation == "screenshot":
            raise NoOracle("the oracle names elements by their ids; with observation='som' it can play")
        return super()._plan()


class WebArenaPixelsEnv(PixelEnv, WebArenaEnv):
    """`WebArenaEnv` with screenshots as observations; `PixelEnv` describes them. Same tasks, actions and rewards.

    ## Version History
    - v0: first version.
    """

    remote_options = PixelEnv.remote_options | {"table_version"}


class MiniWoBPixelsEnv(PixelEnv, MiniWoBEnv):
    """`MiniWoBEnv` with screenshots as observations; `PixelEnv` describes them. Same tasks, actions and rewards.

    ## Version History
    - v0: first version.
    """


def _forms(forms: Mapping[str, CommandForm], observation: str, coordinates: bool | None) -> dict[str, CommandForm]:
    """The accepted commands, in the order of the instructions."""
    by_point = coordinates or (coordinates is None and observation == "screenshot")
    wanted = {*forms, *(COORDINATE_FORMS if by_point else ())}
    if observation == "screenshot":
        wanted -= _BY_ID
    return {name: forms.get(name, form) for name, form in ALL_FORMS.items() if name in wanted}


def _id_of(line: str) -> int | None:
    number = line[1:].partition("]")[0]
    return int(number) if line.startswith("[") and number.isdecimal() else None
