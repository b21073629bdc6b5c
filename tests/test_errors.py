import inspect

import pytest

from agentgym_envs import errors


def classes() -> list[type[Exception]]:
    members = [value for _, value in inspect.getmembers(errors, inspect.isclass)]
    return [value for value in members if issubclass(value, Exception) and value.__module__ == errors.__name__]


@pytest.mark.parametrize("kind", classes())
def test_every_error_is_an_agentgym_error_and_in_the_docstring(kind: type[Exception]) -> None:
    assert issubclass(kind, errors.AgentGymError)
    assert f" {kind.__name__} " in f"{errors.__doc__} ".replace("\n", " ")


@pytest.mark.parametrize("kind", classes())
def test_the_message_is_unchanged(kind: type[Exception]) -> None:
    assert str(kind("there is no task 'x'")) == "there is no task 'x'"


@pytest.mark.parametrize(
    ("kind", "standard"),
    [
        (errors.InvalidAction, ValueError),
        (errors.UsageError, ValueError),
        (errors.UnknownTask, KeyError),
        (errors.EpisodeOver, RuntimeError),
        (errors.EnvError, RuntimeError),
        (errors.MissingExtra, ImportError),
    ],
)
def test_errors_are_caught_as_standard_exceptions(kind: type[Exception], standard: type[Exception]) -> None:
    with pytest.raises(standard):
        raise kind("why")


def test_invalid_action_is_not_a_usage_error() -> None:
    assert not issubclass(errors.InvalidAction, errors.UsageError)
    assert not issubclass(errors.EnvError, errors.UsageError)


def test_a_missing_extra_names_the_command() -> None:
    error = errors.missing_extra("Training", "trl", "trl")
    assert isinstance(error, errors.MissingExtra)
    assert str(error) == (
        "Training needs the package 'trl', which is not installed. Run: pip install 'agentgym-envs[trl]'"
    )
