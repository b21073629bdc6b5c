"""The report of the quick start: one self-contained HTML file, and a summary for the terminal."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import asdict
from html import escape
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from agentgym_envs.evaluate import PairedDifference, paired_difference
from agentgym_envs.trajectory import Trajectory
from agentgym_trl.demo.settings import DemoSettings
from agentgym_trl.demo.stages import Measurement

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


def differences(before: Sequence[Measurement], after: Sequence[Measurement]) -> list[PairedDifference]:
    """The gain on each set of tasks, paired by task."""
    pairs = zip(before, after, strict=True)
    return [paired_difference(b.trajectories, a.trajectories) for b, a in pairs]


def summary_table(before: Sequence[Measurement], after: Sequence[Measurement]) -> Table:
    """Success before and after, and the gain with its interval, for the terminal."""
    table = Table(title="Success on held-out tasks (95 % intervals over tasks)", title_justify="left")
    for name in ("tasks", "number", "warm start", "after GRPO", "gain, points"):
        table.add_column(name, justify="left" if name == "tasks" else "right")
    for row in _rows(before, after):
        table.add_row(*row)
    return table


def print_summary(console: Console, before: Sequence[Measurement], after: Sequence[Measurement], out: Path) -> None:
    """Print the results, and commands to try next."""
    console.print(summary_table(before, after))
    gain = differences(before, after)[0]
    if gain.low > 0:
        verdict = f"GRPO raised success on held-out worlds by {100 * gain.mean:.0f} points, from reward alone."
    else:
        verdict = "This run shows no significant gain: its 95 % CI includes 0."
    console.print(f"\n{verdict}\nThe report, with replayed episodes: [bold]{out / 'report.html'}[/]\n")
    arguments = "--env-arg worlds=invented --env-arg max_distractors=0 --env-arg 'instructions=\"\"'"
    console.print(
        "Next:\n"
        "  agentgym play AgentGym/TextCraft-v0       play the game yourself\n"
        "  agentgym train grpo --help                train a larger model; --config textcraft-qwen2.5-3b-scalinginter\n"
        f"  agentgym eval AgentGym/TextCraft-v0 --policy hf:{out / 'grpo'} --groups depth-1 --tasks 50 \\\n"
        f"      {arguments}\n"
        "                                            evaluate the trained agent",
        highlight=False,
        markup=False,
        soft_wrap=True,
    )


def write_report(
    path: Path,
    settings: DemoSettings,
    before: Sequence[Measurement],
    after: Sequence[Measurement],
    seconds: dict[str, float],
) -> None:
    """Write the self-contained HTML report."""
    image = base64.b64encode((path.parent / "learning_curve.png").read_bytes()).decode()
    cells = [[f"<td>{escape(cell)}</td>" for cell in row] for row in _rows(before, after)]
    rows = "".join(f"<tr>{''.join(row)}</tr>" for row in cells)
    body = f"""<!doctype html><html lang="en"><meta charset="utf-8">
<meta name="viewport" content="width=device-width"><title>AgentGym Envs: quick start</title><style>{_STYLE}</style>
<h1>A small language model learns TextCraft</h1>
<p class="lead">Supervised warm start on {settings.demonstrations} oracle demonstrations, then GRPO on new worlds
with max turns of {escape(settings.max_turns)} ({settings.every} steps each). Seed {settings.seed}.</p>
<img alt="Learning curve, and success before and after" src="data:image/png;base64,{image}">
<h2>Held-out tasks</h2>
<table><tr><th>tasks</th><th>number</th><th>warm start</th><th>after GRPO</th><th>gain, points</th></tr>{rows}</table>
<p>Intervals are over tasks, for this one training seed. Worlds: every item has a made-up name, a different one in each
world, so the model cannot memorise them. Real goals: the real names, of goals that do not occur in training.</p>
<h2>Episodes, before and after</h2>{_episodes(before[0].trajectories, after[0].trajectories)}
<footer>{escape(_facts(settings, seconds))}</footer></html>"""
    path.write_text(body, encoding="utf-8")


def results(before: Sequence[Measurement], after: Sequence[Measurement]) -> list[dict[str, Any]]:
    """The results as JSON objects."""
    gains = differences(before, after)
    return [
        {"tasks": b.name, "before": asdict(b.metrics), "after": asdict(a.metrics), "gain": gain.to_json()}
        for b, a, gain in zip(before, after, gains, strict=True)
    ]


def _rows(before: Sequence[Measurement], after: Sequence[Measurement]) -> list[list[str]]:
    gains = differences(before, after)
    return [
        [b.name, str(b.metrics.tasks), _success(b), _success(a), _points(g)]
        for b, a, g in zip(before, after, gains, strict=True)
    ]


def _points(gain: PairedDifference) -> str:
    return f"{100 * gain.mean:+.0f}  [{100 * gain.low:+.0f}, {100 * gain.high:+.0f}]"


def _success(measurement: Measurement) -> str:
    estimate = measurement.metrics.success
    if estimate is None:
        return "no usable episode"
    return f"{100 * estimate.mean:.0f} %  [{100 * estimate.low:.0f}, {100 * estimate.high:.0f}]"


def _episodes(before: Sequence[Trajectory], after: Sequence[Trajectory], count: int = 6) -> str:
    """Episodes in the same worlds before and after: first failures that became successes, then others."""
    pairs = sorted(zip(before, after, strict=True), key=lambda pair: (pair[0].success, not pair[1].success))
    shown = pairs[: count - 2] + [pair for pair in pairs if not pair[1].success][:1] + pairs[-1:]
    episodes = [(_episode(b, "warm start"), _episode(a, "after GRPO")) for b, a in shown]
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
