"""Print how much of WebArena the embedded sites cover, as the table in docs/webarena.md, and what is missing.

python scripts/web_coverage.py            # the table
python scripts/web_coverage.py --missing  # the intents that are covered partly or not at all, with reasons
"""

from __future__ import annotations

import argparse

from agentgym_envs.webarena.tasks.coverage import coverage_table, intents


def main() -> None:
    """Print the table or the list."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--missing", action="store_true", help="list what is missing")
    if not parser.parse_args().missing:
        print("\n".join(coverage_table()))
        return
    for one in intents():
        if one.verdict != "yes":
            print(f"{one.number:5} {one.site:15} {one.tasks:3} tasks  {one.verdict:7} {one.reason}")


if __name__ == "__main__":
    main()
