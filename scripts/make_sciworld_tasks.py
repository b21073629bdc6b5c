"""Write agentgym_envs/sciworld/tasks.json: every variation of every task, as the installed simulator describes it.

    python scripts/make_sciworld_tasks.py        takes about ten minutes: the simulator loads all 7,207 variations

The goals of a task differ in a few words, so they are stored as a pattern and the words for its blanks.
"""

import hashlib
import itertools
import json
import re
from importlib.metadata import version
from pathlib import Path

from agentgym_envs.sciworld.java import simulator_jar
from agentgym_envs.sciworld.jvm import Jvm

TABLE = Path(__file__).parents[1] / "agentgym_envs" / "sciworld" / "tasks.json"
TOKENS = re.compile(r"[\w()-]+|\s+|[^\w\s]")


def main() -> None:
    """Write the table."""
    listed = json.loads((simulator_jar().parent / "tasks.json").read_text(encoding="utf-8"))
    jvm = Jvm(None, 600, 60.0)
    with jvm.exclusive(None):
        interface = jvm.java.scienceworld.runtime.pythonapi.PythonInterface()
        rows = [row_of(task, all_goals(interface, task["task_name"])) for task in listed]
    jvm.kill()
    jar = hashlib.sha256(simulator_jar().read_bytes()).hexdigest()
    head = json.dumps({"simulator": version("scienceworld"), "jar_sha256": jar})[1:-1]
    body = ",\n".join(json.dumps(row, ensure_ascii=False) for row in rows)
    TABLE.write_text(f'{{{head}, "tasks": [\n{body}\n]}}\n', encoding="utf-8")


def all_goals(interface, name: str) -> list[str]:
    """Return the simulator's description of each variation."""
    goals = []
    for variation in range(interface.getTaskMaxVariations(name)):
        interface.load(name, variation, "", False)
        goals.append(interface.getTaskDescription())
    print(name, len(goals), flush=True)
    return goals


def row_of(task: dict, goals: list[str]) -> dict:
    """Return a row of the table; `goal_of` has the index into `blanks` for each variation."""
    distinct = list(dict.fromkeys(goals))
    pattern, blanks = factor(distinct)
    assert [pattern.format(*words) for words in blanks] == distinct
    return {
        "number": task["task_id"],
        "name": task["task_name"],
        "topic": task["topic"],
        "goal": pattern,
        "blanks": blanks,
        "goal_of": [distinct.index(goal) for goal in goals],
    }


def factor(texts: list[str]) -> tuple[str, list[list[str]]]:
    """Return a pattern with numbered blanks, and the words that give each text."""
    tokens = [TOKENS.findall(text) for text in texts]
    common = tokens[0]
    for other in tokens[1:]:
        common = [common[i] for i, _ in shared(common, other)]
    gaps = [gaps_of(common, text) for text in tokens]
    columns = list(zip(*gaps, strict=True))
    wanted = list(dict.fromkeys(column for column in columns if any(column)))
    marks = [f"{{{wanted.index(column)}}}" if any(column) else "" for column in columns]
    pattern = "".join(mark + token for mark, token in zip(marks, [*common, ""], strict=True))
    return pattern, [list(words) for words in zip(*wanted, strict=True)] or [[]]


def gaps_of(common: list[str], text: list[str]) -> list[str]:
    """Return the parts of a text before each common token and after the last one."""
    ends = [-1, *(j for _, j in shared(common, text)), len(text)]
    return ["".join(text[a + 1 : b]) for a, b in itertools.pairwise(ends)]


def shared(one: list[str], other: list[str]) -> list[tuple[int, int]]:
    """Return the index pairs of a longest common subsequence."""
    longest = [[0] * (len(other) + 1) for _ in range(len(one) + 1)]
    for i in reversed(range(len(one))):
        for j in reversed(range(len(other))):
            same = one[i] == other[j]
            longest[i][j] = longest[i + 1][j + 1] + 1 if same else max(longest[i + 1][j], longest[i][j + 1])
    pairs, i, j = [], 0, 0
    while i < len(one) and j < len(other):
        if one[i] == other[j]:
            pairs.append((i, j))
            i, j = i + 1, j + 1
        elif longest[i + 1][j] >= longest[i][j + 1]:
            i += 1
        else:
            j += 1
    return pairs


if __name__ == "__main__":
    main()
