"""The options of `agentgym eval`, as Typer reads them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from agentgym_envs.cli import completion
from agentgym_envs.cli.common import SHORT, finite

POLICY, TASKS, LIMITS, OUTPUT = "Policy", "Tasks", "Limits", "Output"

EnvIds = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="ENV...",
        help=f"Environment ids, or names: {', '.join(SHORT)}.",
        autocompletion=completion.envs,
    ),
]
MoreEnvs = Annotated[
    list[str] | None,
    typer.Option(
        "--env",
        rich_help_panel=TASKS,
        metavar="ENV",
        help="The same as an option, as often as wanted.",
        autocompletion=completion.envs,
    ),
]
PolicyName = Annotated[
    str,
    typer.Option(
        "--policy",
        rich_help_panel=POLICY,
        help="oracle, random, replay:FILE, openai:MODEL, hf:MODEL_PATH, or MODULE:CLASS of your own.",
        autocompletion=completion.policies,
    ),
]
AgentName = Annotated[
    str | None,
    typer.Option(
        "--agent",
        rich_help_panel=POLICY,
        help="How the model reasons: act, react, plan or reflect; see docs/agents.md.",
        autocompletion=completion.agents,
    ),
]
Context = Annotated[
    str | None,
    typer.Option(
        rich_help_panel=POLICY,
        help="What the agent shows the model: full (the default), last:TURNS or summarise:TURNS.",
        autocompletion=completion.contexts,
    ),
]
Tries = Annotated[
    int | None,
    typer.Option(rich_help_panel=POLICY, min=1, help="reflect: how often a task is tried at most; 3 by default."),
]
BaseUrl = Annotated[
    str | None, typer.Option(rich_help_panel=POLICY, help="openai: address of the server, up to and with /v1.")
]
KeyEnv = Annotated[
    str, typer.Option(rich_help_panel=POLICY, help="openai: the environment variable that holds the key.")
]
Template = Annotated[Path | None, typer.Option(rich_help_panel=POLICY, help="hf: a file with a Jinja chat template.")]
TemplateKwargs = Annotated[
    str | None,
    typer.Option(
        rich_help_panel=POLICY,
        metavar="JSON",
        help="hf: variables of the chat template, as in '{\"enable_thinking\": false}'.",
    ),
]
Groups = Annotated[
    str | None,
    typer.Option(
        rich_help_panel=TASKS,
        help="Groups of tasks, separated by commas.",
        autocompletion=completion.group_list,
    ),
]
Tasks = Annotated[
    str | None,
    typer.Option(
        rich_help_panel=TASKS,
        metavar="NUMBER|FILE",
        help="How many tasks, chosen by the seed, or a file that names them (ids, one a line or as JSON, or a file of "
        "AgentGym-RL); by default all. Runs that are to be compared need the same number and seed, or the same file.",
    ),
]
SkipUnknown = Annotated[
    bool,
    typer.Option(
        "--skip-unknown", rich_help_panel=TASKS, help="Leave out what the file of tasks names and no environment knows."
    ),
]
SplitName = Annotated[
    str | None,
    typer.Option(
        "--split",
        rich_help_panel=TASKS,
        show_default="test",
        help="train, validation, test, or all.",
        autocompletion=completion.splits,
    ),
]
Samples = Annotated[int, typer.Option("--samples", "-k", rich_help_panel=TASKS, min=1, help="Episodes a task.")]
TurnTokens = Annotated[int, typer.Option(rich_help_panel=LIMITS, min=1, help="Token budget of an answer.")]
MaxTokens = Annotated[
    int,
    typer.Option(
        rich_help_panel=LIMITS,
        min=1,
        help="hf, and any model with --agent: token budget of an episode, observations included.",
    ),
]
Temperature = Annotated[
    float, typer.Option(rich_help_panel=POLICY, min=0.0, callback=finite, help="Sampling temperature; 0 is greedy.")
]
Concurrency = Annotated[int, typer.Option(rich_help_panel=LIMITS, min=1, help="Episodes at a time.")]
Retries = Annotated[
    int,
    typer.Option(
        rich_help_panel=LIMITS, min=0, help="How often an episode is played again in which the environment failed."
    ),
]
Seed = Annotated[
    int, typer.Option(rich_help_panel=TASKS, min=0, help="Decides tasks and starts, not what a model samples.")
]
Out = Annotated[
    Path | None,
    typer.Option(
        rich_help_panel=OUTPUT,
        help="A directory for trajectories.jsonl, eval.json, report.html, report.md and metrics.csv.",
    ),
]
Tokens = Annotated[
    bool,
    typer.Option("--tokens", rich_help_panel=OUTPUT, help="hf: write the tokens of each episode too, for the viewer."),
]
Suite = Annotated[
    bool,
    typer.Option(
        "--suite",
        rich_help_panel=OUTPUT,
        help="Print the table of 27 tasks, beside the figures that the paper reports.",
    ),
]
Resume = Annotated[bool, typer.Option("--resume", rich_help_panel=OUTPUT, help="Go on with the run in --out.")]
LimitOfTurns = Annotated[
    int, typer.Option("--max-turns", min=1, rich_help_panel=LIMITS, help="Limit of turns of an episode.")
]
EnvArgs = Annotated[
    list[str] | None,
    typer.Option(
        "--env-arg",
        metavar="KEY=VALUE",
        rich_help_panel=TASKS,
        help="An argument of the environment; the value is JSON or a word. With base_url=http://... it is a server's.",
    ),
]
Overwrite = Annotated[
    bool, typer.Option("--overwrite", rich_help_panel=OUTPUT, help="Replace what an earlier run left there.")
]
Json = Annotated[bool, typer.Option("--json", rich_help_panel=OUTPUT, help="Print JSON and nothing else on stdout.")]
