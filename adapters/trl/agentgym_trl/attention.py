"""Attention kernels for sequences whose length changes all the time."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch


@contextmanager
def without_cudnn_attention() -> Iterator[None]:
    """Keep torch from cuDNN's attention, which it prefers in half precision on Hopper and newer GPUs.

    cuDNN builds a plan for every new shape, in tens of milliseconds. Generation has a new shape at every token, and
    training one in almost every batch. The other kernels need no plan.
    """
    before = bool(torch.backends.cuda.cudnn_sdp_enabled())  # type: ignore[no-untyped-call]
    torch.backends.cuda.enable_cudnn_sdp(False)
    try:
        yield
    finally:
        torch.backends.cuda.enable_cudnn_sdp(before)
