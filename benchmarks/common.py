"""What the benchmark scripts share: their command line, and medians of what takes turns."""

from __future__ import annotations

import argparse
import json
import os
import platform
from collections.abc import Callable
from pathlib import Path
from typing import Any


def run(description: str | None, measure: Callable[[int], Any], show: Callable[[Any], None], repeats: int) -> None:
    """Measure, show, and write down if asked to."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, help="also write the figures as JSON to this file")
    parser.add_argument(
        "--repeats", type=int, default=repeats, help=f"how often everything is measured (default: {repeats})"
    )
    arguments = parser.parse_args()
    result = measure(arguments.repeats)
    show(result)
    if arguments.out:
        arguments.out.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")


def machine() -> dict[str, Any]:
    """On what it was measured."""
    return {"python": platform.python_version(), "system": platform.system(), "cores": os.cpu_count()}
