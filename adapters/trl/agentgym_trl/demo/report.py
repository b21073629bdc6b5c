"""The report of the quick start: one self-contained HTML file, and a summary for the terminal."""

from __future__ import annotations

import base64
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from html import escape
from pathlib import Path
from typing import Any

from rich.box import SIMPLE
from rich.console import Console
from rich.table import Table

from agentgym_envs.evaluate import PairedDifference, paired_difference
from agentgym_envs.trajectory import Trajectory
from agentgym_trl.demo import plots
from agentgym_trl.demo.arms import GRPO, WARM, Arm
from agentgym_trl.demo.settings import DemoSettings
from agentgym_trl.demo.stages import Measurement, won_in_time

_STYLE = """
:root { color-scheme: light dark; --line: #8884; --soft: #8881; --good: #1a7f37; --bad: #b42318; --blue: #1f6feb }
body { font: 16px/1.55 system-ui, sans-serif; max-width: 66rem; margin: 2rem auto; padding: 0 1rem }
h1 { margin-bottom: 0 } .lead { opacity: .75; margin-top: .3rem }
img { width: 100%; border-radius: 8px; background: #fff }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums }
th, td { text-align: left; padding: .4rem .7rem; border-bottom: 1px solid var(--line) }
.pair { display: grid; grid-template-columns: 1fr 1fr; gap: 1rem }
@media (max-width: 48rem) { .pair { display: block } }
.episode { border: 1px solid var(--line); border-radius: 8px; padding: .8rem 1rem; margin: .6rem 0 }
.episode h4 { margin: 0 0 .5rem } .badge { float: right; font-weight: 600 }
.success { color: var(--good) } .failure { color: var(--bad) }
pre { background: var(--soft); padding: .6rem .8rem; border-radius: 6px; margin: .3rem 0 }
pre, .action, .reply { white-space: pre-wrap; overflow-wrap: anywhere }
.turn { display: grid; grid-template-columns: 1.6rem 1fr auto; gap: .2rem .6rem; padding: .35rem 0 }
.turn { border-top: 1px dashed var(--line) } .action { font-family: ui-monospace, monospace; color: var(--blue) }
.reply { grid-column: 2; opacity: .8 } .reward { font-weight: 600 }
footer { opacity: .7; font-size: .9rem; margin: 2rem 0 }
"""
_BAR_WIDTH = 20


def print_teacher(console: Console, demonstrations: Sequence[Trajectory], settings: DemoSettings) -> None:
    """Print what the teacher's episodes are like."""
    won = len(won_in_time(demonstrations, settings))
    console.print(
        f"  The teacher wastes {settings.waste_rate:.0%} of its turns: {won} of its {len(demonstrations)} episodes "
        f"succeed within {settings.eval_turns} turns.",
        highlight=False,
    )


def print_line(console: Console, arm: Arm) -> None:
    """Print the success of an arm that was just measured."""
    console.print(f"  {arm.name}: success {_success(arm.measurements[0])}", highlight=False)


def print_summary(console: Console, found: Sequence[Arm], settings: DemoSettings, out: Path, seconds: float) -> None:
    """Print the arms as bars, an episode before and after, and commands to try next."""
    console.print()
    console.print(summary_table(found))
    _print_episode_pair(console, found)
    console.print(f"\n{verdict(found)}", highlight=False, soft_wrap=True)
    console.print(f"It took {seconds:.0f} seconds.\n", highlight=False)
    console.print(
        "Next:\n"
        f"  {out / 'report.html'}  the report, for a browser\n"
        f"  agentgym view {out}  every episode, in the viewer\n"
        "  agentgym play AgentGym/TextCraft-v0  play the game yourself\n"
        "  agentgym train grpo --help  train a larger model; --config textcraft-qwen2.5-3b-scalinginter",
        highlight=False,
        markup=False,
        soft_wrap=True,
    )


def summary_table(found: Sequence[Arm]) -> Table:
    """A row per arm and set of tasks: sampled success as a bar with its interval, turns, greedy success, CPU time."""
    table = Table(box=SIMPLE, pad_edge=False, title="Success of sampled answers, 95 % interval over tasks")
    for name in ("arm", "", "success", "turns", "greedy", "CPU s"):
        table.add_column(name, justify="left" if name in ("arm", "") else "right", no_wrap=True)
    for sampled, greedy in _pairs(found):
        table.add_row(f"[bold]{sampled[0].name.removesuffix(', sampled')}[/]")
        for arm, one, other in zip(found, sampled, greedy, strict=True):
            table.add_row(arm.name, _bar(arm.name, one), *_cells(arm, one, other))
        table.add_section()
    return table


def verdict(found: Sequence[Arm]) -> str:
    """Say how GRPO compares with the warm start and each other arm, in points of sampled success."""
    trained = _arm(found, GRPO)
    parts = []
    for arm in found:
        if arm.name != GRPO:
            gain = difference(arm, trained)
            parts.append(f"{_points(gain)} points against {arm.name}")
    return "GRPO from reward alone: " + "; ".join(parts) + "."


def difference(before: Arm, after: Arm) -> PairedDifference:
    """The difference in sampled success on the first set of tasks, paired by task."""
    return paired_difference(before.measurements[0].trajectories, after.measurements[0].trajectories)


def write(
    out: Path,
    settings: DemoSettings,
    found: Sequence[Arm],
    curve: Sequence[dict[str, Any]],
    seconds: dict[str, float],
) -> None:
    """Write the plot and the self-contained HTML report."""
    plots.plot_run(out / "learning_curve.png", curve, found)
    image = base64.b64encode((out / "learning_curve.png").read_bytes()).decode()
    before, after = (_arm(found, name).measurements[0].trajectories for name in (WARM, GRPO))
    body = f"""<!doctype html><html lang="en"><meta charset="utf-8">
<meta name="viewport" content="width=device-width"><title>AgentGym Envs: quick start</title><style>{_STYLE}</style>
<h1>Imitating a careless teacher, and learning from experience</h1>
<p class="lead">The teacher of {settings.demonstrations} demonstrations wastes {settings.waste_rate:.0%} of its turns.
After the same warm start, every arm uses about the same CPU time. The limit is {settings.eval_turns} turns. Seed
{settings.seed}.</p>
<img alt="Learning curve, and success of every arm" src="data:image/png;base64,{image}">
<h2>Evaluation</h2>{_html_table(found)}
<p>Intervals are over tasks, for this one training seed. {escape(verdict(found))}</p>
<h2>Episodes, before and after GRPO</h2>{_episodes(before, after)}
<footer>{escape(_facts(settings, seconds))}</footer></html>"""
    (out / "report.html").write_text(body, encoding="utf-8")


def results(found: Sequence[Arm]) -> list[dict[str, Any]]:
    """The arms as JSON objects."""
    return [
        {
            "arm": arm.name,
            "cpu_seconds": arm.cpu_seconds,
            "results": {m.name: asdict(m.metrics) for m in arm.measurements},
        }
        for arm in found
    ]


def _pairs(found: Sequence[Arm]) -> Iterator[tuple[list[Measurement], list[Measurement]]]:
    """For each set of tasks, the sampled and the greedy measurements of all arms."""
    for at in range(0, len(found[0].measurements), 2):
        yield [arm.measurements[at] for arm in found], [arm.measurements[at + 1] for arm in found]


def _cells(arm: Arm, sampled: Measurement, greedy: Measurement) -> tuple[str, str, str, str]:
    turns, best = sampled.metrics.turns, greedy.metrics.success
    return (
        _success(sampled),
        "-" if turns is None else f"{turns:.1f}",
        "-" if best is None else f"{100 * best.mean:.0f} %",
        f"{arm.cpu_seconds:.0f}",
    )


def _arm(found: Sequence[Arm], name: str) -> Arm:
    return next(arm for arm in found if arm.name == name)


def _bar(name: str, measurement: Measurement) -> str:
    estimate = measurement.metrics.success
    length = round(_BAR_WIDTH * estimate.mean) if estimate else 0
    return f"[{'blue' if name == GRPO else 'white'}]{'█' * length}[/][dim]{'░' * (_BAR_WIDTH - length)}[/]"


def _points(gain: PairedDifference) -> str:
    return f"{100 * gain.mean:+.0f} [{100 * gain.low:+.0f}, {100 * gain.high:+.0f}]"


def _success(measurement: Measurement) -> str:
    estimate = measurement.metrics.success
    if estimate is None:
        return "no usable episode"
    return f"{100 * estimate.mean:.0f} % [{100 * estimate.low:.0f}, {100 * estimate.high:.0f}]"


def _print_episode_pair(console: Console, found: Sequence[Arm]) -> None:
    """Print an episode that only the trained agent solves, before and after."""
    before, after = (_arm(found, name).measurements[0].trajectories for name in (WARM, GRPO))
    old, new = _flipped(before, after)[0]
    console.print(f"\n[bold]{new.task.goal}[/], at most {max(len(old.turns), len(new.turns))} turns", highlight=False)
    table = Table(show_edge=False, pad_edge=False)
    for title, episode in (("before: " + WARM, old), ("after: " + GRPO, new)):
        table.add_column(f"{title} ({'solved' if episode.success else 'not solved'})", ratio=1)
    table.add_row(_lines(old), _lines(new))
    console.print(table)


def _lines(trajectory: Trajectory) -> str:
    return "\n".join(f"> {action}".replace("[", r"\[") for action in trajectory.actions)


def _flipped(before: Sequence[Trajectory], after: Sequence[Trajectory]) -> list[tuple[Trajectory, Trajectory]]:
    """The pairs of episodes in the same state, failures that became successes first."""
    return sorted(zip(before, after, strict=True), key=lambda pair: (pair[0].success, not pair[1].success))


def _html_table(found: Sequence[Arm]) -> str:
    rows = []
    for sampled, greedy in _pairs(found):
        rows.append(f'<tr><th colspan="5">{escape(sampled[0].name.removesuffix(", sampled"))}</th></tr>')
        for arm, one, other in zip(found, sampled, greedy, strict=True):
            cells = "".join(f"<td>{escape(cell)}</td>" for cell in (arm.name, *_cells(arm, one, other)))
            rows.append(f"<tr>{cells}</tr>")
    head = "".join(f"<th>{name}</th>" for name in ("arm", "success, sampled", "turns", "success, greedy", "CPU s"))
    return f"<table><tr>{head}</tr>{''.join(rows)}</table>"


def _episodes(before: Sequence[Trajectory], after: Sequence[Trajectory], count: int = 6) -> str:
    """Episodes in the same worlds before and after: first failures that became successes, then others."""
    pairs = _flipped(before, after)
    shown = pairs[: count - 2] + [pair for pair in pairs if not pair[1].success][:1] + pairs[-1:]
    episodes = [(_episode(b, WARM), _episode(a, GRPO)) for b, a in shown]
    return "".join(f'<div class="pair">{b}{a}</div>' for b, a in episodes)


def _episode(trajectory: Trajectory, title: str) -> str:
    first = trajectory.turns[0].observation if trajectory.turns else trajectory.final_observation
    kind = "success" if trajectory.success else "failure"
    replies = [turn.observation for turn in trajectory.turns[1:]] + [trajectory.final_observation]
    turns = "".join(
        f'<div class="turn"><span>{number}</span><span class="action">{escape(turn.action)}</span>'
        f'<span class="reward">{turn.reward:+.0f}</span><span class="reply">{escape(reply)}</span></div>'
        for number, (turn, reply) in enumerate(zip(trajectory.turns, replies, strict=True), 1)
    )
    badge = f'<span class="badge {kind}">{escape(trajectory.stop_reason.replace("_", " "))}</span>'
    return f'<div class="episode">{badge}<h4>{title}</h4><pre>{escape(first)}</pre>{turns}</div>'


def _facts(settings: DemoSettings, seconds: dict[str, float]) -> str:
    times = ", ".join(f"{name} {value:.0f} s" for name, value in seconds.items())
    again = f"To repeat the run: scripts/demo --seed {settings.seed}."
    return f"Wall-clock: {times}. Settings: {asdict(settings)}. {again}"
