"""The data of the page as JSON objects, for the server and the export."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from concurrent.futures import TimeoutError as TooSlow
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agentgym_envs.errors import AgentGymError, UnknownTask
from agentgym_envs.image_files import FOLDER, read_image
from agentgym_envs.trajectory import Trajectory, strict_json
from agentgym_envs.viewer.detail import detail_of
from agentgym_envs.viewer.figures import FIGURES, EpisodeFigures, Figures
from agentgym_envs.viewer.filters import Lists, PageQuery, Query, Selection
from agentgym_envs.viewer.index import EpisodeEntry, Index, IndexSnapshot, read_bytes, read_episode
from agentgym_envs.viewer.notes import Note, Notes, find_mark, mark_of
from agentgym_envs.viewer.sources import ATIF

if TYPE_CHECKING:
    from agentgym_envs.viewer.runs import Runs

REFRESH_SECONDS = 1.0
"""Minimum time between two checks of the files, which happen on requests."""
PANEL_SECONDS = 20.0
MAX_SIBLINGS = 50
_CACHED_PANELS, _PANEL_THREADS, _SAMPLED = 32, 2, 16
_TaskKey = tuple[str, str]
_NO_PANELS: dict[str, Any] = {"kind": None, "states": []}


class UnknownEpisode(UnknownTask):
    """There is no episode with that number (any more)."""


class Viewer:
    """Queries over the episodes below the given paths. All methods are thread-safe."""

    def __init__(self, paths: Sequence[Path], *, panel_seconds: float = PANEL_SECONDS) -> None:
        self.index, self._notes, self._figures = Index(paths), Notes(), Figures()
        self._lists = Lists(figures=self._figures)
        self._panel_seconds = panel_seconds
        self._summary: tuple[int, dict[str, Any]] = (-1, {})
        self._tasks: tuple[int, dict[_TaskKey, list[EpisodeEntry]]] = (-1, {})
        self._means: tuple[Selection | None, dict[str, float] | None] = None, None
        self._panels = _Panels()

    def summary(self) -> dict[str, Any]:
        """The values to filter by, and a version that changes with every change of the episodes."""
        snapshot = self._now()
        version, known = self._summary
        if version != snapshot.version:
            known = summary_of(snapshot) | {"figures": self._known_figures(snapshot)}
            self._summary = (snapshot.version, known)
        return known

    def page(self, page: PageQuery) -> dict[str, Any]:
        """The requested rows of a list, their total number, and means over all of them."""
        snapshot = self._now()
        selection = self._lists.select(snapshot, page.query)
        shown = selection.entries[page.offset : page.offset + page.limit]
        figures = self._figures.of(shown)
        rows = [row_of(entry, figures[entry.id], snapshot.notes.get(entry.id)) for entry in shown]
        found = {"version": snapshot.version, "total": len(selection.entries), "rows": rows, "note": selection.note}
        return found | {"means": self._means_of(selection)}

    def select(self, query: Query) -> Selection:
        """The episodes that match a query."""
        return self._lists.select(self._now(), query)

    def episode(self, number: int) -> dict[str, Any]:
        """The full episode. Raises UnknownEpisode."""
        entry, notes = self._entry(number), self._notes.add_to(self.index.snapshot).notes
        note = notes.get(entry.id, Note())
        row = row_of(entry, self._figures.of([entry])[entry.id], note)
        own = {"labels": _labels_of(entry), "mark": _mark_of(entry), "note": note._asdict()}
        siblings = [row_of(other, note=notes.get(other.id)) for other in self._siblings(entry)]
        return {"row": row, **detail_of(_read(entry)), **own, "siblings": siblings}

    def find(self, number: int, mark: str) -> int:
        """The number of the episode with a mark; `number` is the one that it had. Raises UnknownEpisode."""
        snapshot = self._now()
        entry = self.index.get(number)
        if entry is None or _mark_of(entry) != mark:
            entry = find_mark(snapshot.entries, mark)
        if entry is None:
            raise UnknownEpisode("the linked episode is not here; open the folder that the link was made for")
        return entry.id

    def write_note(self, number: int, text: str, tags: Sequence[str], version: int) -> dict[str, Any]:
        """Write the note of an episode; see `write_note`. Raises UnknownEpisode, too."""
        return self._notes.write(self._entry(number), text, tags, version)._asdict()

    def export(self, number: int) -> str:
        """The episode as one HTML page; see `export`. Raises UnknownEpisode."""
        from agentgym_envs.viewer.export import export_html

        return export_html(self, [self._entry(number)])

    def animation(self, number: int) -> bytes:
        """The episode as an animated GIF. Raises UnknownEpisode, or MissingExtra without Pillow."""
        from agentgym_envs.image_observations import check_pillow

        check_pillow("an animation", "images")
        from agentgym_envs.viewer.animation import animate

        entry = self._entry(number)
        return animate(_read(entry), entry.file.path.parent)

    def runs(self) -> dict[str, Any]:
        """The figures of all runs."""
        return self._known_runs.table(self._now())

    def run(self, name: str) -> dict[str, Any]:
        """The figures of one run, with its groups, errors and config. Raises UnknownEpisode."""
        found = self._known_runs.run(self._now(), name)
        if found is None:
            raise UnknownEpisode(f"there is no run {name!r:.200}")
        return found

    def panels(self, number: int) -> dict[str, Any]:
        """The panel of the scenario, or a note if it is not available. Raises UnknownEpisode."""
        entry = self._entry(number)
        return self._panels.get(number, lambda: _panels_of(_read(entry)), self._panel_seconds)

    def image(self, number: int, name: str) -> bytes | None:
        """An image next to the episode's file; None if there is none of that name. Raises UnknownEpisode."""
        return read_image(self._entry(number).file.path.parent, f"{FOLDER}/{name}")

    def tokens(self, number: int) -> dict[str, Any]:
        """The tokens of the episode, or a note if there are none. Raises UnknownEpisode."""
        from agentgym_envs.viewer.tokens import tokens_inside, tokens_of

        entry = self._entry(number)
        try:
            if entry.file.source.kind == ATIF:
                return tokens_inside(read_bytes(entry))
            return tokens_of(entry.file.path, read_bytes(entry))
        except (AgentGymError, OSError) as error:
            return {"segments": [], "note": f"The tokens cannot be shown: {error}"}

    def training(self) -> dict[str, Any]:
        """The metrics of the training runs."""
        from agentgym_envs.viewer.training import training_of

        snapshot = self._now()
        return training_of(snapshot.runs, snapshot.entries)

    @cached_property
    def _known_runs(self) -> Runs:
        """The runs, whose module is not needed for the first page."""
        from agentgym_envs.viewer.runs import Runs

        return Runs(self._figures)

    def _means_of(self, selection: Selection) -> dict[str, float] | None:
        """The means of a list, which all of its pages share."""
        known, means = self._means
        if known is not selection:
            means = means_of(selection.entries)
            self._means = selection, means
        return means

    def _known_figures(self, snapshot: IndexSnapshot) -> list[str]:
        """The figures that the records seem to have, by a sample of them."""
        sample = snapshot.entries[:: max(1, len(snapshot.entries) // _SAMPLED)]
        found = self._figures.of(sample).values()
        return [name for name in FIGURES if any(getattr(one, name) is not None for one in found)]

    def _siblings(self, entry: EpisodeEntry) -> list[EpisodeEntry]:
        """Other episodes of the task, those with the same seed first; the nearest ones if there are many."""
        snapshot = self.index.snapshot
        version, tasks = self._tasks
        if version != snapshot.version:
            tasks = {}
            for other in snapshot.entries:
                tasks.setdefault(_task_key(other), []).append(other)
            self._tasks = (snapshot.version, tasks)
        found = [other for other in tasks.get(_task_key(entry), ()) if other.id != entry.id]
        found.sort(key=lambda other: (other.summary.seed != entry.summary.seed, abs(other.id - entry.id)))
        return sorted(found[:MAX_SIBLINGS], key=lambda other: (other.summary.seed != entry.summary.seed, other.id))

    def _now(self) -> IndexSnapshot:
        return self._notes.add_to(self.index.refresh(REFRESH_SECONDS))

    def _entry(self, number: int) -> EpisodeEntry:
        entry = self.index.get(number)
        if entry is None:  # it may have been written since the last check
            self._now()
            entry = self.index.get(number)
        if entry is None:
            raise UnknownEpisode(f"there is no episode {number}; its file may have been replaced")
        return entry


def _task_key(entry: EpisodeEntry) -> _TaskKey:
    return entry.summary.env, entry.summary.task


def row_of(entry: EpisodeEntry, figures: EpisodeFigures | None = None, note: Note | None = None) -> dict[str, Any]:
    """An episode as a row of a list."""
    summary = entry.summary
    row: dict[str, Any] = {name: getattr(summary, name) for name in summary.__struct_fields__}
    row |= {name: getattr(figures, name, None) for name in FIGURES}
    row |= {"tags": list(note.tags) if note else [], "noted": note is not None and bool(note.text)}
    return {"id": entry.id, "source": entry.file.source.name, **row, "has_tokens": entry.file.has_tokens}


def means_of(entries: Sequence[EpisodeEntry]) -> dict[str, float] | None:
    """Means over the usable episodes: success, score and turns; None without one."""
    usable = [entry.summary for entry in entries if entry.summary.stop != "env_error" and entry.summary.turns]
    if not usable:
        return None
    count = len(usable)
    return {
        "episodes": count,
        "success": sum(one.success for one in usable) / count,
        "score": sum(one.score for one in usable) / count,
        "turns": sum(one.turns for one in usable) / count,
    }


def summary_of(snapshot: IndexSnapshot) -> dict[str, Any]:
    """The values to filter by."""
    summaries = [entry.summary for entry in snapshot.entries]
    groups: dict[str, set[str]] = {}
    for one in summaries:
        groups.setdefault(one.env, set()).add(one.group)
    return {
        "version": snapshot.version,
        "count": len(summaries),
        "sources": _sources(snapshot),
        "envs": sorted(groups),
        "groups": {env: sorted(names) for env, names in sorted(groups.items())},
        "stops": sorted({one.stop for one in summaries}),
        "policies": sorted({one.policy for one in summaries if one.policy is not None}),
        "steps": sorted({one.step for one in summaries if one.step is not None}),
        "tags": sorted({tag for note in snapshot.notes.values() for tag in note.tags}),
        "noted": any(note.text or note.tags for note in snapshot.notes.values()),
        "has_training": bool(snapshot.runs),
        "problems": snapshot.problems,
    }


def to_json(value: Any) -> str:
    """Convert to JSON for browsers: lone surrogates as escapes, and null for NaN and infinity."""
    return strict_json(value, ensure_ascii=True)


def _sources(snapshot: IndexSnapshot) -> list[dict[str, Any]]:
    sources: dict[str, dict[str, Any]] = {}
    for file in snapshot.files:
        row = sources.setdefault(file.source.name, {"name": file.source.name, "kind": file.source.kind, "count": 0})
        row["count"] += len(file.ids)
    return list(sources.values())


def _read(entry: EpisodeEntry) -> Trajectory:
    try:
        return read_episode(entry)
    except AgentGymError as error:
        raise UnknownEpisode(f"episode {entry.id} can no longer be read: {error}") from None


def _mark_of(entry: EpisodeEntry) -> str | None:
    """The mark of an episode; None if its file can no longer be read."""
    try:
        return mark_of(read_bytes(entry))
    except AgentGymError:
        return None


def _labels_of(entry: EpisodeEntry) -> dict[str, Any] | None:
    from agentgym_envs.viewer.labels import labels_of

    try:
        return labels_of(entry.file.path, read_bytes(entry))
    except AgentGymError:
        return None


def _panels_of(trajectory: Trajectory) -> dict[str, Any]:
    """The panel, or a note on its error: it may replay the episode, and the page is useful without it."""
    try:
        from agentgym_envs.viewer.panels import panels_of

        return panels_of(trajectory)
    except Exception as error:
        return {**_NO_PANELS, "note": f"The state is not available: {' '.join(str(error).split())[:500]}"}


class _Panels:
    """A cache of panels, which are made in their own threads, with a time limit per request.

    The threads are daemons, so that a hanging simulator does not prevent the program from exiting.
    """

    def __init__(self) -> None:
        self._cache: OrderedDict[int, Future[dict[str, Any]]] = OrderedDict()
        self._lock, self._free = threading.Lock(), threading.Semaphore(_PANEL_THREADS)

    def get(self, number: int, make: Callable[[], dict[str, Any]], seconds: float) -> dict[str, Any]:
        with self._lock:
            future = self._cache.get(number)
            if future is None or (future.done() and future.exception() is not None):
                future = self._cache[number] = Future()
                threading.Thread(target=self._make, args=(make, future), name="panels", daemon=True).start()
            self._cache.move_to_end(number)
            while len(self._cache) > _CACHED_PANELS:
                self._cache.popitem(last=False)
        try:
            return future.result(seconds)
        except TooSlow:
            return {**_NO_PANELS, "note": f"The state is not ready after {seconds:g} s; try again later."}

    def _make(self, make: Callable[[], dict[str, Any]], future: Future[dict[str, Any]]) -> None:
        with self._free:
            try:
                future.set_result(make())
            except Exception as error:
                future.set_exception(error)
