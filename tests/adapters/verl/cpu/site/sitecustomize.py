"""Python runs this first in each of a run's eight processes: hides scikit-learn from transformers.

transformers imports it for a kind of generation that verl does not use. Without it every process starts a second
faster.
"""

import sys

sys.modules["sklearn"] = None  # type: ignore[assignment]
