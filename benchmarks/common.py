"""Shared code of the benchmark scripts: the command line, and medians over alternating sides."""

from __future__ import annotations

import argparse
import json
import os
import platform
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any


def run(
    description: str | None,
    measure: Callable[[int], Any],
    show: Callable[[Any], None],
    repeats: int,
    compare: Callable[[int, Path], Any] | None = None,
) -> None:
    """Measure, show, and write down if asked to. `compare` measures with the folder of another version as baseline."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, help="also write the figures as JSON to this file")
    parser.add_argument(
        "--repeats", type=int, default=repeats, help=f"how often everything is measured (default: {repeats})"
    )
    if compare is not None:
        parser.add_argument("--baseline", type=Path, metavar="FOLDER", help="compare with the code in another checkout")
    arguments = parser.parse_args()
    baseline = getattr(arguments, "baseline", None)
    result = compare(arguments.repeats, baseline) if compare and baseline else measure(arguments.repeats)
    show(result)
    if arguments.out:
        arguments.out.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")


def machine() -> dict[str, Any]:
    """On what it was measured."""
    return {"python": platform.python_version(), "system": platform.system(), "cores": os.cpu_count()}


def verdict(name: str, value: float, at_least: Mapping[str, float], at_most: Mapping[str, float]) -> tuple[str, str]:
    """The target of a figure, and whether it is met, as two cells of a table; empty if it has none."""
    if name in at_least:
        return f">= {at_least[name]:,.0f}", "yes" if value >= at_least[name] else "no"
    if name in at_most:
        return f"<= {at_most[name]:g}", "yes" if value <= at_most[name] else "no"
    return "", ""
