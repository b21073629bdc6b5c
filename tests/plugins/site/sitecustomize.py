"""Python runs this first in the processes that tests start; their imports take half the time with it.

The values are those of `OPTIONAL` and `THRESHOLD` in `tests.plugins.startup`: hidden packages, and less frequent
collections of garbage, since imports leave none.
"""

import gc
import importlib.metadata
import marshal
import os
import sys
from collections.abc import Mapping

for _name in ("sklearn", "wandb"):
    sys.modules[_name] = None  # type: ignore[assignment]
gc.set_threshold(50_000, 10, 10)
_search = importlib.metadata.packages_distributions


def _packages_distributions() -> Mapping[str, list[str]]:
    """The same as before, found once in a run: transformers and TRL each read the file lists of all distributions."""
    path = os.path.join(os.environ["TMPDIR"], sys.prefix.replace(os.sep, "_") + ".packages")
    try:
        with open(path, "rb") as file:
            return marshal.load(file)
    except (OSError, ValueError, EOFError):
        found = dict(_search())
    own = f"{path}.{os.getpid()}"
    with open(own, "wb") as file:
        marshal.dump(found, file)
    os.replace(own, path)
    return found


if "TMPDIR" in os.environ:
    importlib.metadata.packages_distributions = _packages_distributions
