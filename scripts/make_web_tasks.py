"""Write the tasks that a version of WebArena's task table adds, from the templates and the worlds.

    python scripts/make_web_tasks.py 2            # write the file; refused for a frozen version that would change
    python scripts/make_web_tasks.py 2 --check    # only compare; exit code 1 if the file is out of date

Afterwards, run scripts/measure_difficulty.py and scripts/make_task_docs.py.
"""

from __future__ import annotations

import argparse
import gzip
import sys
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from agentgym_envs.task import Task
from agentgym_envs.webarena.tasks import table


def main() -> int:
    """Write a file, or check it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("version", type=int, choices=table.VERSIONS)
    parser.add_argument("--check", action="store_true", help="write nothing")
    arguments = parser.parse_args()
    path = Path(table.__file__).parent / "data" / table.file_name(arguments.version)
    made = table.packed(arguments.version)
    same = path.exists() and gzip.decompress(path.read_bytes()) == gzip.decompress(made)
    if not same and arguments.check:
        print(f"{path.name} is out of date; run python scripts/make_web_tasks.py {arguments.version}", file=sys.stderr)
        return 1
    if not same and arguments.version in table.FROZEN:
        print(f"version {arguments.version} is frozen, but the templates now make other tasks", file=sys.stderr)
        return 1
    if not same:
        path.write_bytes(made)
    tasks = table.load(arguments.version)
    print(f"version {arguments.version}: {len(tasks):,} tasks, digest {tasks.digest}")
    for split, share in several_sites(tasks).items():
        print(f"  {split}: {share:.1%} of the tasks need several sites")
    return 0


def several_sites(tasks: Iterable[Task]) -> dict[str, float]:
    """Return the share of the tasks on several sites in each split."""
    found = [(task.split, len(task.data["sites"]) > 1) for task in tasks]
    sizes, several = Counter(split for split, _ in found), Counter(split for split, many in found if many)
    return {split: several[split] / size for split, size in sizes.items()}


if __name__ == "__main__":
    sys.exit(main())
