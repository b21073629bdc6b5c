"""Small files in the format of the published sets."""

from __future__ import annotations

import json
from pathlib import Path

from agentgym_envs.search.questions.flashrag import PUBLISHED


def question(name: str, row: int, about: str = "") -> str:
    """Return a line of a file."""
    return json.dumps(
        {
            "id": f"{name}_{row}",
            "question": f"Which one is {about or name} {row}",
            "golden_answers": [f"{name} {row}", "öne"],
        },
        ensure_ascii=False,
    )


def write_sets(folder: Path, rows: int) -> Path:
    """Write every published file, with a few rows."""
    for part in PUBLISHED:
        path = folder / part.file
        path.parent.mkdir(exist_ok=True)
        lines = [question(part.name, row, part.file) for row in range(rows)]
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return folder
