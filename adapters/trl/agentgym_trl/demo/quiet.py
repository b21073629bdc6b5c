"""Silence for the libraries under the demo: its own lines are the output."""

from __future__ import annotations

import logging
import os
import warnings


def quiet() -> None:
    """Switch off what libraries print; call it before they are imported."""
    os.environ.update(HF_HUB_OFFLINE="1", TRL_EXPERIMENTAL_SILENCE="1", TOKENIZERS_PARALLELISM="false")
    warnings.filterwarnings("ignore")
    logging.disable(logging.WARNING)
