"""The options of `agentgym eval`, for Typer."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from agentgym_envs.cli import completion
from agentgym_envs.cli.common import finite, finite_or_none
from agentgym_envs.cli.envs import SHORT_NAMES

POLICY, TASKS, LIMITS, OUTPUT = "Policy", "Tasks", "Limits", "Output"

EnvIds = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="ENV...",
        help=f"Environment ids or short names: {', '.join(SHORT_NAMES)}.",
        autocompletion=completion.envs,
    ),
]
MoreEnvs = Annotated[
    list[str] | None,
    typer.Option(
        "--env",
        rich_help_panel=TASKS,
        metavar="ENV",
        help="Same as the argument ENV. Can be repeated.",
        autocompletion=completion.envs,
    ),
]
PolicyName = Annotated[
    str,
    typer.Option(
        "--policy",
        rich_help_panel=POLICY,
        help="oracle, oracle:DEFECTS (such as oracle:idle=0.5,slip=0.1), random, replay:FILE, openai:MODEL, hf:MODEL, "
        "or MODULE:CLASS of your own.",
        autocompletion=completion.policies,
    ),
]
AgentName = Annotated[
    str | None,
    typer.Option(
        "--agent",
        rich_help_panel=POLICY,
        help="Reasoning style of the model: act, react, plan or reflect; see docs/agents.md.",
        autocompletion=completion.agents,
    ),
]
Context = Annotated[
    str | None,
    typer.Option(
        rich_help_panel=POLICY,
        help="History that the agent shows to the model: full (default), last:TURNS or summarise:TURNS.",
        autocompletion=completion.contexts,
    ),
]
Attempts = Annotated[
    int | None,
    typer.Option(rich_help_panel=POLICY, min=1, help="reflect: maximum number of attempts per episode; default: 3."),
]
BaseUrl = Annotated[
    str | None,
    typer.Option(
        rich_help_panel=POLICY,
        help="openai: URL of the server, up to and including /v1; default: $OPENAI_BASE_URL, else OpenAI's.",
    ),
]
PriceText = Annotated[
    str | None,
    typer.Option(
        "--price",
        rich_help_panel=POLICY,
        metavar="IN,OUT|FILE",
        help="openai: dollars per million tokens read and written, or a JSON file with those of models, for the cost.",
    ),
]
RequestRate = Annotated[
    float | None,
    typer.Option(
        "--requests-per-minute", rich_help_panel=POLICY, min=0.001, callback=finite_or_none, help="openai: rate limit."
    ),
]
CassetteFile = Annotated[
    Path | None,
    typer.Option(
        "--cassette",
        rich_help_panel=POLICY,
        metavar="FILE",
        help="openai: record the replies in this file; recorded requests are not sent again.",
    ),
]
Replay = Annotated[
    bool,
    typer.Option(
        "--replay", rich_help_panel=POLICY, help="openai: answer from --cassette only, without network and key."
    ),
]
MaxImages = Annotated[
    int | None,
    typer.Option(
        rich_help_panel=POLICY,
        min=1,
        help="openai, for observations with screenshots: number of the newest ones in a request; default: 1.",
    ),
]
KeyEnv = Annotated[
    str, typer.Option(rich_help_panel=POLICY, help="openai: environment variable that contains the API key.")
]
Template = Annotated[Path | None, typer.Option(rich_help_panel=POLICY, help="hf: file with a Jinja chat template.")]
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
        help="Groups of tasks, separated by commas; default: all.",
        autocompletion=completion.group_list,
    ),
]
Tasks = Annotated[
    str | None,
    typer.Option(
        rich_help_panel=TASKS,
        metavar="NUMBER|FILE",
        help="Number of tasks, chosen by the seed, or a file that names them (ids, one per line or as JSON, or a file "
        "of AgentGym-RL); default: all. To compare runs, use the same number and seed, or the same file.",
    ),
]
SkipUnknown = Annotated[
    bool,
    typer.Option(
        "--skip-unknown", rich_help_panel=TASKS, help="Skip tasks of the file that belong to none of the environments."
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
EpisodesPerTask = Annotated[
    int,
    typer.Option(
        "--episodes-per-task", "-k", rich_help_panel=TASKS, min=1, help="Number of episodes per task, for pass@k."
    ),
]
TurnTokens = Annotated[int, typer.Option(rich_help_panel=LIMITS, min=1, help="Maximum number of tokens per answer.")]
MaxTokens = Annotated[
    int,
    typer.Option(
        rich_help_panel=LIMITS,
        min=1,
        help="hf, and any model with --agent: maximum number of tokens per episode, including observations.",
    ),
]
Temperature = Annotated[
    float, typer.Option(rich_help_panel=POLICY, min=0.0, callback=finite, help="Sampling temperature; 0 is greedy.")
]
Concurrency = Annotated[
    int, typer.Option(rich_help_panel=LIMITS, min=1, help="Maximum number of episodes at the same time.")
]
Retries = Annotated[
    int,
    typer.Option(
        rich_help_panel=LIMITS, min=0, help="Maximum number of times an episode is repeated if its environment failed."
    ),
]
Seed = Annotated[
    int,
    typer.Option(
        rich_help_panel=TASKS, min=0, help="Seed of the tasks and their initial states, not of a model's sampling."
    ),
]
Out = Annotated[
    Path | None,
    typer.Option(
        rich_help_panel=OUTPUT,
        help="Directory for trajectories.jsonl (written as episodes end), eval.json, report.html, report.md and "
        "metrics.csv.",
    ),
]
Tokens = Annotated[
    bool,
    typer.Option("--tokens", rich_help_panel=OUTPUT, help="hf: also write the tokens of each episode, for the viewer."),
]
Labels = Annotated[
    bool,
    typer.Option(
        "--labels",
        rich_help_panel=OUTPUT,
        help="Label each turn as `agentgym label` does, and show regret, first mistakes and recovery.",
    ),
]
AgentGymRL = Annotated[
    bool,
    typer.Option(
        "--agentgym-rl",
        rich_help_panel=OUTPUT,
        help="Print AgentGym-RL's table of 27 tasks, next to the figures of the paper.",
    ),
]
By = Annotated[
    Literal["group", "difficulty"],
    typer.Option(
        "--by", rich_help_panel=OUTPUT, help="Rows of the tables: groups of tasks, or bands of the oracle's turns."
    ),
]
Resume = Annotated[bool, typer.Option("--resume", rich_help_panel=OUTPUT, help="Resume the run in --out.")]
MaxTurns = Annotated[
    int | None,
    typer.Option(
        "--max-turns",
        min=1,
        rich_help_panel=LIMITS,
        help="Maximum number of turns per episode; default: that of the environment, which is printed.",
    ),
]
EnvArgs = Annotated[
    list[str] | None,
    typer.Option(
        "--env-arg",
        metavar="KEY=VALUE",
        rich_help_panel=TASKS,
        help="Argument of the environment; the value is JSON or text. base_url=http://... uses a server.",
    ),
]
NativeTools = Annotated[
    bool,
    typer.Option(
        "--tools",
        rich_help_panel=TASKS,
        help="Native tool calls: actions are tools of the chat template or API, and observations their results.",
    ),
]
Overwrite = Annotated[
    bool, typer.Option("--overwrite", rich_help_panel=OUTPUT, help="Replace the output of an earlier run.")
]
Json = Annotated[bool, typer.Option("--json", rich_help_panel=OUTPUT, help="Print only JSON on stdout.")]
