"""The table of checks: OpenEnv's ids with the severities of its policy `severity-v2`, and ours (`agentgym.*`).

A check is a function from a `ValidationSubject` to a `Finding`; its docstring says what it asserts.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from enum import IntEnum, StrEnum
from typing import NamedTuple

from agentgym_envs.errors import UsageError
from agentgym_envs.validate import contract, runtime, semantic, static, statistical, surroundings
from agentgym_envs.validate.findings import Finding
from agentgym_envs.validate.subject import Prerequisite, ValidationSubject

POLICY_VERSION = "v2"
"""The version of OpenEnv's severity policy from which the severities come."""
STARTUP = "runtime.startup"
"""The check without which no other is run."""


class CheckLevel(IntEnum):
    """OpenEnv's levels, which order checks by their cost."""

    STATIC = 1
    RUNTIME = 2
    SEMANTIC = 3
    STATISTICAL = 4


class CheckSeverity(StrEnum):
    """The meaning of a failed check for the verdict."""

    FAIL = "fail"
    WARN = "warn"
    ADVISORY = "advisory"


class ValidationCheck(NamedTuple):
    """A check: its function, or the reason why it never applies to a Gymnasium environment."""

    id: str
    level: CheckLevel
    severity: CheckSeverity
    run: Callable[[ValidationSubject], Finding] | str
    remedy: str = ""
    needs: tuple[Prerequisite, ...] = ()

    @property
    def measured(self) -> bool:
        """True if the check can be measured for some environment."""
        return not isinstance(self.run, str)

    @property
    def summary(self) -> str:
        """The assertion of the check, or the reason why it does not apply."""
        return self.run if isinstance(self.run, str) else (inspect.getdoc(self.run) or "").partition("\n")[0]


_STATIC, _RUNTIME, _SEMANTIC, _STATISTICAL = CheckLevel
_FAIL, _WARN, _ADVISORY = CheckSeverity
_TEXT_ENV = (Prerequisite.TEXT_ENV,)
_LOCAL = (Prerequisite.LOCAL,)
_BOTH = (Prerequisite.TEXT_ENV, Prerequisite.LOCAL)
_OTHER = (Prerequisite.LOCAL, Prerequisite.IMPORTABLE)
_NO_IMAGE = "a Gymnasium environment is Python code, and no container image is built"
_ONLY_RNG = "Draw only from the `rng` of `_begin`, set all state there, and share none between environments."
_NO_LEAK = "Close in `_close` what `_begin` opens, and keep nothing of an episode in lists of the class or module."

CHECKS: tuple[ValidationCheck, ...] = (
    ValidationCheck(
        "static.manifest", _STATIC, _FAIL, static.manifest, "Write a docstring and `rules`; pass JSON as arguments."
    ),
    ValidationCheck("static.reproducible_build", _STATIC, _FAIL, _NO_IMAGE),
    ValidationCheck("static.image_hygiene", _STATIC, _WARN, _NO_IMAGE),
    ValidationCheck("static.layout", _STATIC, _WARN, "the layout of a package is that of its wheel, which pip checks"),
    ValidationCheck("static.sbom", _STATIC, _FAIL, "the metadata of installed distributions lists their contents"),
    ValidationCheck("static.oci_labels", _STATIC, _FAIL, _NO_IMAGE),
    ValidationCheck(
        "static.resource_declaration",
        _STATIC,
        _FAIL,
        static.resource_declaration,
        "Set the class attributes to True or False, and `remote_options` to names of arguments.",
        _BOTH,
    ),
    ValidationCheck("static.timeout_ceiling", _STATIC, _FAIL, static.timeout_ceiling, "Make resets and steps faster."),
    ValidationCheck(
        "static.dependency_pinning",
        _STATIC,
        _FAIL,
        static.dependency_pinning,
        "Write a lower bound, at least, for each requirement.",
    ),
    ValidationCheck(
        "static.task_distribution_pinning",
        _STATIC,
        _FAIL,
        static.task_distribution_pinning,
        "Use a `TaskTable`, or derive every task and the digest from the number alone.",
        _TEXT_ENV,
    ),
    ValidationCheck(
        STARTUP, _RUNTIME, _FAIL, runtime.startup, "Read the error; `agentgym doctor` lists what is missing."
    ),
    ValidationCheck(
        "runtime.reward_well_formed",
        _RUNTIME,
        _FAIL,
        runtime.reward_well_formed,
        "Return floats that add up to at most 1 per episode.",
    ),
    ValidationCheck(
        "runtime.rubric_introspectable", _RUNTIME, _WARN, "rewards are numbers, and no tree of rubrics is declared"
    ),
    ValidationCheck(
        "runtime.observation_schema",
        _RUNTIME,
        _FAIL,
        runtime.observation_schema,
        "Return texts of limited length without lone surrogates, or widen the space.",
    ),
    ValidationCheck(
        "runtime.state_contract",
        _RUNTIME,
        _FAIL,
        runtime.state_contract,
        "Do not override `reset`, `step` or `status`; implement `_begin` and `_act`.",
        _TEXT_ENV,
    ),
    ValidationCheck(
        "runtime.trajectory_record",
        _RUNTIME,
        _WARN,
        runtime.trajectory_record,
        "Put only JSON into `info`.",
        _TEXT_ENV,
    ),
    ValidationCheck(
        "runtime.reward_attribution",
        _RUNTIME,
        _WARN,
        runtime.reward_attribution,
        "Return the increase of the score as the reward of a step.",
        _TEXT_ENV,
    ),
    ValidationCheck(
        "runtime.tool_declaration_accuracy",
        _RUNTIME,
        _FAIL,
        runtime.tool_declaration_accuracy,
        "Make `grammars` carry every command, and the oracle use only commands that `_act` knows.",
        _TEXT_ENV,
    ),
    ValidationCheck(
        "runtime.task_declaration_accuracy",
        _RUNTIME,
        _FAIL,
        static.task_declaration_accuracy,
        "Derive `counts` and `groups` from the tasks, as `TaskTable` does.",
        _TEXT_ENV,
    ),
    ValidationCheck("runtime.seed_control", _RUNTIME, _FAIL, runtime.seed_control, _ONLY_RNG),
    ValidationCheck("runtime.episode_determinism", _RUNTIME, _FAIL, runtime.episode_determinism, _ONLY_RNG),
    ValidationCheck(
        "runtime.network_policy",
        _RUNTIME,
        _FAIL,
        surroundings.network_policy,
        "Ship the data, or take the address as an argument and run the service yourself.",
    ),
    ValidationCheck(
        "runtime.host_containment",
        _RUNTIME,
        _FAIL,
        surroundings.host_containment,
        "Write into `tempfile` folders, or a cache below `platformdirs.user_cache_dir`.",
        _LOCAL,
    ),
    ValidationCheck("runtime.resource_bounds", _RUNTIME, _FAIL, surroundings.resource_bounds, _NO_LEAK, _LOCAL),
    ValidationCheck("runtime.episode_isolation", _RUNTIME, _FAIL, runtime.episode_isolation, _ONLY_RNG),
    ValidationCheck(
        "runtime.oracle_containment",
        _RUNTIME,
        _FAIL,
        semantic.oracle_containment,
        "Remove the plan from `_details`, and commands that reveal it from `_act`.",
        _TEXT_ENV,
    ),
    ValidationCheck(
        "agentgym.gymnasium_check", _RUNTIME, _FAIL, contract.gymnasium_check, "Read the message of `check_env`."
    ),
    ValidationCheck(
        "agentgym.episode_over",
        _RUNTIME,
        _FAIL,
        contract.episode_over,
        "Do not override `step`.",
        _TEXT_ENV,
    ),
    ValidationCheck(
        "agentgym.close_final", _RUNTIME, _FAIL, contract.close_final, "Override `_close`, not `close`.", _TEXT_ENV
    ),
    ValidationCheck(
        "agentgym.refused_options",
        _RUNTIME,
        _FAIL,
        contract.refused_options,
        "Call `super()` from `reset`, or do not override it.",
        _TEXT_ENV,
    ),
    ValidationCheck(
        "agentgym.invalid_actions",
        _RUNTIME,
        _FAIL,
        contract.invalid_actions,
        "Raise InvalidAction for errors of the policy (for a number: check its length before int()).",
        _TEXT_ENV,
    ),
    ValidationCheck(
        "agentgym.snapshot_roundtrip",
        _RUNTIME,
        _FAIL,
        runtime.snapshot_roundtrip,
        f"With `_save` and `_load`, copy all state. Without: {_ONLY_RNG}",
        _TEXT_ENV,
    ),
    ValidationCheck(
        "agentgym.pickle_roundtrip",
        _RUNTIME,
        _FAIL,
        contract.pickle_roundtrip,
        "Keep all state in attributes that pickle copies, or implement `__getstate__`.",
        _BOTH,
    ),
    ValidationCheck(
        "agentgym.state_key",
        _RUNTIME,
        _FAIL,
        runtime.state_key,
        "Add to `_state` if the goal is reached.",
        _TEXT_ENV,
    ),
    ValidationCheck(
        "agentgym.oracle_pure",
        _RUNTIME,
        _FAIL,
        runtime.oracle_pure,
        "Let `_plan` work on a copy, and draw random numbers in `_begin`.",
        _TEXT_ENV,
    ),
    ValidationCheck(
        "agentgym.random_command",
        _RUNTIME,
        _WARN,
        contract.random_command,
        "Implement `random_command` with commands of the world, drawn from the `rng` that it is given.",
        _TEXT_ENV,
    ),
    ValidationCheck("agentgym.global_rng", _RUNTIME, _FAIL, surroundings.global_rng, _ONLY_RNG, _LOCAL),
    ValidationCheck(
        "agentgym.rendering",
        _RUNTIME,
        _FAIL,
        contract.rendering,
        "Return a text that is not empty from `_draw`.",
        _BOTH,
    ),
    ValidationCheck(
        "agentgym.served",
        _RUNTIME,
        _FAIL,
        surroundings.served,
        "Put only JSON into `info`, and keep the environment independent of threads.",
        _BOTH,
    ),
    ValidationCheck(
        "semantic.oracle_max",
        _SEMANTIC,
        _FAIL,
        semantic.oracle_max,
        "Correct `_plan`, or the reward of its last command: `terminated`, with rewards that add up to 1.",
        _TEXT_ENV,
    ),
    ValidationCheck(
        "semantic.floor_gap", _SEMANTIC, _FAIL, semantic.floor_gap, "Reward only what the policy does.", _TEXT_ENV
    ),
    ValidationCheck(
        "semantic.canary_floor",
        _SEMANTIC,
        _FAIL,
        semantic.canary_floor,
        "Verify the goal of the task itself, and nothing that other actions reach.",
        _TEXT_ENV,
    ),
    ValidationCheck(
        "semantic.no_solution_leakage",
        _SEMANTIC,
        _FAIL,
        semantic.no_solution_leakage,
        "Remove the solution from the observation of `_begin` and from `rules`.",
        _TEXT_ENV,
    ),
    ValidationCheck(
        "semantic.verifier_determinism",
        _SEMANTIC,
        _FAIL,
        semantic.verifier_determinism,
        "Make the reward a function of task and actions, without the clock and without chance.",
    ),
    ValidationCheck(
        "semantic.verifier_portability",
        _SEMANTIC,
        _FAIL,
        surroundings.verifier_portability,
        "Sort sets before their order counts; use no network, local time, or relative path.",
        _OTHER,
    ),
    ValidationCheck(
        "semantic.resource_envelope",
        _SEMANTIC,
        _FAIL,
        surroundings.resource_envelope,
        "Declare `heavy = True` or `blocking = True`, so that servers keep it in a worker.",
        _BOTH,
    ),
    ValidationCheck("semantic.replayability", _SEMANTIC, _FAIL, runtime.replayability, _ONLY_RNG),
    ValidationCheck("hub.layer_isolation", _STATIC, _WARN, _NO_IMAGE),
    ValidationCheck(
        "hub.time_to_first_work",
        _RUNTIME,
        _WARN,
        surroundings.time_to_first_work,
        "Import large packages when they are first needed; load data in `prepare`.",
        _OTHER,
    ),
    ValidationCheck("hub.cosign_signature", _STATIC, _WARN, _NO_IMAGE),
    ValidationCheck(
        "hub.cross_host_determinism",
        _RUNTIME,
        _FAIL,
        surroundings.cross_host_determinism,
        "Sort sets before their order counts; use no local time, and no absolute or relative path in texts.",
        _OTHER,
    ),
    ValidationCheck(
        "hub.immutable_versioning", _STATIC, _FAIL, static.immutable_versioning, "Register an id such as My/Env-v0."
    ),
    ValidationCheck(
        "statistical.reward_reachability",
        _STATISTICAL,
        _FAIL,
        statistical.reward_reachability,
        "Remove tasks that cannot be solved, or correct their rewards.",
        _TEXT_ENV,
    ),
    ValidationCheck(
        "statistical.difficulty_separation",
        _STATISTICAL,
        _FAIL,
        statistical.difficulty_separation,
        "Measure the difficulties of the task set again.",
        _TEXT_ENV,
    ),
    ValidationCheck(
        "statistical.headroom",
        _STATISTICAL,
        _WARN,
        statistical.headroom,
        "Add tasks that chance does not solve.",
        _TEXT_ENV,
    ),
    ValidationCheck(
        "statistical.variance_bound",
        _STATISTICAL,
        _FAIL,
        statistical.variance_bound,
        "Make equal work earn equal rewards, whatever the seed.",
        _TEXT_ENV,
    ),
    ValidationCheck(
        "statistical.adversarial_floor",
        _STATISTICAL,
        _FAIL,
        statistical.adversarial_floor,
        "Verify more than the words of the answer.",
        _TEXT_ENV,
    ),
    ValidationCheck(
        "statistical.gameability_gap",
        _STATISTICAL,
        _WARN,
        statistical.gameability_gap,
        "Give the last part of the score for the goal only, and end the episode there.",
        _TEXT_ENV,
    ),
    ValidationCheck(
        "statistical.training_signal",
        _STATISTICAL,
        _ADVISORY,
        statistical.training_signal,
        "Give partial rewards, or add tasks that a weak policy solves sometimes.",
        _TEXT_ENV,
    ),
)
"""All checks, in the order in which they are run and reported: what takes longest comes last."""


def select_checks(names: list[str] | None) -> list[ValidationCheck]:
    """The checks with these ids or namespaces ("semantic"); all without names. Raises UsageError for another name."""
    if names is None:
        return list(CHECKS)
    known = {check.id for check in CHECKS} | {check.id.partition(".")[0] for check in CHECKS}
    if unknown := [name for name in names if name not in known]:
        groups = ", ".join(dict.fromkeys(check.id.partition(".")[0] for check in CHECKS))
        raise UsageError(f"there is no check {', '.join(unknown)}; use an id such as {STARTUP}, or one of {groups}")
    return [check for check in CHECKS if {check.id, check.id.partition(".")[0]} & set(names)]


def check_table() -> str:
    """All checks as a table in Markdown."""
    rows = ["| check | severity | |", "|---|---|---|"]
    for check in CHECKS:
        needs = "" if Prerequisite.TEXT_ENV not in check.needs else " *"
        severity = check.severity if check.measured else f"({check.severity})"
        summary = check.summary if check.measured else f"Not applicable: {check.summary}."
        rows.append(f"| `{check.id}`{needs} | {severity} | {summary} |")
    return "\n".join(rows)
