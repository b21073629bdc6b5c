"""A notebook is what its page says, and runs."""

from __future__ import annotations

import importlib
import json
import os
import sys
from pathlib import Path
from types import ModuleType

import pytest

from tests.docs.snippets import ROOT

NAMES = ("evaluate", "first-episode", "train")


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(ROOT / "scripts"))
    return importlib.import_module("make_notebooks")


def test_every_page_has_its_notebook(script: ModuleType) -> None:
    assert tuple(page.stem for page in script.pages()) == NAMES
    for page in script.pages():
        text = page.with_suffix(".ipynb").read_text(encoding="utf-8")
        assert script.written(page) == text, "run: python scripts/make_notebooks.py"


@pytest.mark.parametrize("name", NAMES)
def test_a_notebook_has_no_outputs_and_installs_first(name: str) -> None:
    cells = json.loads((ROOT / f"docs/notebooks/{name}.ipynb").read_text(encoding="utf-8"))["cells"]
    code = [cell for cell in cells if cell["cell_type"] == "code"]
    assert not any(cell["outputs"] or cell["execution_count"] for cell in code)
    assert "%pip install" in "".join(code[0]["source"])
    assert "colab.research.google.com" in "".join(cells[0]["source"])
    for cell in cells:  # a relative link leads nowhere in Colab
        assert cell["cell_type"] == "code" or "](../" not in "".join(cell["source"])


@pytest.mark.slow
@pytest.mark.train
@pytest.mark.rotating
@pytest.mark.parametrize("name", NAMES)
def test_a_notebook_runs(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    nbformat = pytest.importorskip("nbformat", reason="nbformat is not installed (extra dev)")
    nbclient = pytest.importorskip("nbclient", reason="nbclient is not installed (extra dev)")
    pytest.importorskip("ipykernel", reason="ipykernel is not installed (extra dev)")
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(path for path in sys.path if path))
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    notebook = nbformat.read(ROOT / f"docs/notebooks/{name}.ipynb", as_version=4)
    nbformat.validate(notebook)
    nbclient.NotebookClient(notebook, timeout=900, resources={"metadata": {"path": str(tmp_path)}}).execute()
    assert any(cell.get("outputs") for cell in notebook.cells)
