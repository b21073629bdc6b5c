"""Python runs this first in each of a run's eight processes: transformers finds no scikit-learn.

It would import that library for a kind of generation that verl has no use for; so every process starts a second sooner.
"""

import sys

sys.modules["sklearn"] = None  # type: ignore[assignment]
