"""The options of `agentgym eval`, as Typer reads them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from agentgym_envs.cli.common import SHORT

EnvIds = Annotated[
    list[str] | None,
    typer.Argument(metavar="ENV...", help=f"Environment ids, or names: {', '.join(SHORT)}."),
]
MoreEnvs = Annotated[
    list[str] | None, typer.Option("--env", metavar="ENV", help="The same as an option, as often as wanted.")
]
PolicyName = Annotated[
    str, typer.Option("--policy", help="oracle, random, replay:FILE, openai:MODEL or hf:MODEL_PATH.")
]
AgentName = Annotated[
    str | None, typer.Option("--agent", help="How the model reasons: act, react, plan or reflect; see docs/agents.md.")
]
Context = Annotated[
    str | None, typer.Option(help="What the agent shows the model: full (the default), last:TURNS or summarise:TURNS.")
]
Tries = Annotated[int | None, typer.Option(min=1, help="reflect: how often a task is tried at most; 3 by default.")]
BaseUrl = Annotated[str | None, typer.Option(help="openai: address of the server, up to and with /v1.")]
KeyEnv = Annotated[str, typer.Option(help="openai: the environment variable that holds the key.")]
Template = Annotated[Path | None, typer.Option(help="hf: a file with a Jinja chat template.")]
Groups = Annotated[str | None, typer.Option(help="Groups of tasks, separated by commas.")]
Tasks = Annotated[
    str | None,
    typer.Option(
        metavar="NUMBER|FILE",
        help="How many tasks, chosen by the seed, or a file that names them (ids, one a line or as JSON, or a file of "
        "AgentGym-RL); by default all.",
    ),
]
SkipUnknown = Annotated[
    bool, typer.Option("--skip-unknown", help="Leave out what the file of tasks names and no environment knows.")
]
Samples = Annotated[int, typer.Option("--samples", "-k", min=1, help="Episodes a task.")]
TurnTokens = Annotated[int, typer.Option(min=1, help="Token budget of an answer.")]
MaxTokens = Annotated[
    int, typer.Option(min=1, help="hf, and any model with --agent: token budget of an episode, observations included.")
]
Temperature = Annotated[float, typer.Option(min=0.0, help="Sampling temperature; 0 is greedy.")]
Concurrency = Annotated[int, typer.Option(min=1, help="Episodes at a time.")]
Retries = Annotated[
    int, typer.Option(min=0, help="How often an episode is played again in which the environment failed.")
]
Seed = Annotated[int, typer.Option(min=0, help="Decides tasks and starts, not what a model samples.")]
Out = Annotated[Path | None, typer.Option(help="A directory for trajectories, eval.json and the reports.")]
Tokens = Annotated[bool, typer.Option("--tokens", help="hf: write the tokens of each episode too, for the viewer.")]
Suite = Annotated[
    bool, typer.Option("--suite", help="Print the table of 27 tasks, beside the figures that the paper reports.")
]
Resume = Annotated[bool, typer.Option("--resume", help="Go on with the run in --out.")]
