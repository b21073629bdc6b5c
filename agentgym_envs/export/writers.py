"""The functions that write each format of `formats`."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

from agentgym_envs.export import nemo
from agentgym_envs.export.atif import to_atif
from agentgym_envs.export.episodes import ExportEpisode
from agentgym_envs.export.formats import ExportCounts, ExportOptions
from agentgym_envs.export.otlp import has_times, to_otlp, write_line
from agentgym_envs.export.tasks import ExportTasks
from agentgym_envs.trajectory import strict_json
from agentgym_envs.whole_files import replacing, write_whole


def write_atif(episodes: Iterable[ExportEpisode], out: Path, options: ExportOptions, counts: ExportCounts) -> None:
    """Write a document per episode into a folder, or one per line into a file `*.jsonl`.

    Documents of an earlier export in that folder are removed at the end.
    """
    if out.suffix == ".jsonl":
        return _write_lines(episodes, out, lambda one: strict_json(to_atif(one, version=options.atif_version)), counts)
    out.mkdir(parents=True, exist_ok=True)
    earlier = set(out.glob("*.atif.json"))
    for episode in episodes:
        path = out / f"{episode.name}.atif.json"
        write_whole(path, strict_json(to_atif(episode, version=options.atif_version)) + "\n")
        earlier.discard(path)
        _count(counts, episode)
    for path in earlier:
        path.unlink()
    return None


def write_otlp(episodes: Iterable[ExportEpisode], out: Path, options: ExportOptions, counts: ExportCounts) -> None:
    """Write a trace per line into a file."""
    _write_lines(episodes, out, lambda one: write_line(to_otlp(one, content=options.content)), counts)


def write_nemo(episodes: Iterable[ExportEpisode], out: Path, options: ExportOptions, counts: ExportCounts) -> None:
    """Write the tasks of the episodes as a data set; see `write_nemo_tasks`."""

    def tasks() -> Iterable[nemo.NemoTask]:
        for episode in episodes:
            _count(counts, episode)
            yield nemo.NemoTask.of(episode.trajectory)

    write_nemo_tasks(tasks(), out, options, counts)


def write_nemo_selection(selection: ExportTasks, out: Path, options: ExportOptions, counts: ExportCounts) -> None:
    """Write tasks of an environment as a data set; see `write_nemo_tasks`."""
    env, given, seed = selection.env, selection.options, selection.seed
    shown = selection.instructions, selection.tools
    write_nemo_tasks(
        (nemo.NemoTask(env, task.id, seed, given, *shown) for task in selection.tasks), out, options, counts
    )


def write_nemo_tasks(tasks: Iterable[nemo.NemoTask], out: Path, options: ExportOptions, counts: ExportCounts) -> None:
    """Write rows, configuration and entry point of a NeMo-Gym run into a folder."""
    counts.rows = 0
    with replacing(out / "rows.jsonl") as file:
        for task in nemo.distinct(tasks):
            file.write(strict_json(task.row(), ensure_ascii=True).encode() + b"\n")
            counts.rows += 1
    server = out / "resources_servers" / nemo.SERVER
    write_whole(server / "app.py", nemo.WAITING_APP)
    write_whole(server / "requirements.txt", nemo.WAITING_REQUIREMENTS)
    write_whole(out / f"{nemo.SERVER}.yaml", nemo.config("rows.jsonl", options.host, options.port, options.max_turns))


def _write_lines(
    episodes: Iterable[ExportEpisode], out: Path, line: Callable[[ExportEpisode], str], counts: ExportCounts
) -> None:
    with replacing(out) as file:
        for episode in episodes:
            file.write(line(episode).encode() + b"\n")
            _count(counts, episode)


def _count(counts: ExportCounts, episode: ExportEpisode) -> None:
    counts.episodes += 1
    counts.without_times += not has_times(episode.trajectory)
