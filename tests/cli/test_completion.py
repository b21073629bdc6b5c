"""Shell completion, called with the environment variables of bash."""

from collections.abc import Callable

import pytest

from agentgym_envs.cli import main

from .conftest import Run

Offered = Callable[[str], list[str]]


def ask(monkeypatch: pytest.MonkeyPatch, line: str) -> None:
    """Set the variables with which bash requests the completions of a line."""
    monkeypatch.setenv("_AGENTGYM_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", line)
    monkeypatch.setenv("COMP_CWORD", str(len(line.split(" ")) - 1))


@pytest.fixture
def offered(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Offered:
    def call(line: str) -> list[str]:
        ask(monkeypatch, line)
        with pytest.raises(SystemExit) as ended:
            main([])
        assert ended.value.code == 0
        out, err = capfd.readouterr()
        assert err == ""
        return out.split()

    return call


@pytest.mark.slow
def test_the_program_completes_in_a_subprocess(spawn: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    ask(monkeypatch, "agentgym do")
    assert spawn()[:2] == (0, "doctor\n")


@pytest.mark.slow_after(8)
@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("agentgym so", "solve"),
        ("agentgym search q", "query"),
        ("agentgym eval textcraft --conc", "--concurrency"),
        ("agentgym solve textc", "textcraft textcraftcoop"),
        ("agentgym solve AgentGym/T", "AgentGym/TextCraft-v0 AgentGym/TextCraftCoop-v0"),
        ("agentgym eval textc", "textcraft textcraftcoop"),
        ("agentgym eval babyai textc", "textcraft textcraftcoop"),
        ("agentgym eval --env b", "babyai"),
        ("agentgym serve textcraft b", "babyai"),
        ("agentgym bench b", "babyai"),
        ("agentgym demos b", "babyai"),
        ("agentgym play b", "babyai"),
        ("agentgym view runs --env b", "babyai"),
        ("agentgym search serve --env b", "babyai"),
        ("agentgym eval textcraft --policy o", "oracle oracle: openai:"),
        ("agentgym eval textcraft --agent re", "react reflect"),
        ("agentgym eval textcraft --context s", "summarise:"),
        ("agentgym eval textcraft --split v", "validation"),
        ("agentgym solve textcraft --split a", "all"),
        ("agentgym demos textcraft --grammar t", "tag tool_call tools"),
        ("agentgym compare a b --value su", "success"),
        ("agentgym search query --engine b", "bm25s brave"),
        ("agentgym serve --dialect o", "openenv"),
    ],
)
def test_names_are_completed(offered: Offered, line: str, expected: str) -> None:
    assert offered(line) == expected.split()


def test_groups_of_the_environments_in_the_line_are_completed(offered: Offered) -> None:
    assert offered("agentgym solve textcraft --groups depth-1") == ["depth-1"]
    assert offered("agentgym demos textcraft --groups depth-1,depth-") == [f"depth-1,depth-{n}" for n in (2, 3, 4)]
    assert offered("agentgym eval textcraft textcraftcoop --groups depth-4,agents-2/depth-3") == [
        "depth-4,agents-2/depth-3"
    ]
    assert offered("agentgym solve --groups depth-1") == []  # no environment in the line


def test_tasks_of_the_table_are_completed(offered: Offered) -> None:
    found = offered("agentgym solve textcraft --task textcraft/30")
    assert found[0] == "textcraft/30"
    assert set(found[1:]) == {f"textcraft/{300 + number}" for number in range(10)}
    assert "webarena/shopping-compare/3/2" in offered("agentgym webarena sites --task webarena/shopping-compare/3")


@pytest.mark.parametrize("line", ["view r", "report r", "compare r", "demos textcraft --out r", "search index r"])
def test_nothing_is_offered_for_files_so_that_the_shell_completes_them(offered: Offered, line: str) -> None:
    assert offered(f"agentgym {line}") == []
