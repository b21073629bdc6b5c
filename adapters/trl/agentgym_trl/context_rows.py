"""`ContextRows`: the contexts of a batch of episodes as rows of their own, for a forward pass.

TRL's row is an episode, so that groups, preferences, rewards and the means of losses are over episodes. If an episode
has several contexts, its row has them end to end, and no token may see those of an earlier context. So they are taken
apart before a model reads them, and what the model returns is put back into the rows of the episodes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from agentgym_envs.rollout import TokenTrajectory


@dataclass(frozen=True, slots=True)
class ContextRows:
    """R contexts of B episodes, in TRL's layout: one prompt padded on the left (P), the rest padded on the right (T').

    The prompt of a further context is its first token, since only tokens behind the prompt are scored.
    """

    source: Tensor
    """(R, P + T') the index of each token in the flattened batch (B, P + T); -1 on padding"""
    prompt: int
    """P"""
    shape: torch.Size
    """(B, P + T)"""

    @property
    def mask(self) -> Tensor:
        """(R, P + T') the attention mask of the contexts."""
        return (self.source >= 0).long()

    def batch_size(self, episodes: int | None) -> int | None:
        """The contexts of a forward pass, for as many passes as with `episodes` each: they may be collective calls."""
        if episodes is None:
            return None
        passes = -(-self.shape[0] // episodes)
        return -(-len(self.source) // passes)

    def take(self, values: Tensor) -> Tensor:
        """Values of the episodes' tokens (B, P + T) as those of the contexts (R, P + T'); 0 on padding."""
        return torch.where(self.source >= 0, values.reshape(-1)[self.source.clamp(min=0)], 0)

    def take_behind(self, values: Tensor) -> Tensor:
        """Values of the tokens behind the prompt (B, T) as those of the contexts (R, T')."""
        return self.take(torch.nn.functional.pad(values, (self.prompt, 0)))[:, self.prompt :]

    def put(self, values: Tensor) -> Tensor:
        """Values of the contexts' tokens behind the prompt (R, T') as those of the episodes (B, T); else 0."""
        return self.put_all(torch.nn.functional.pad(values, (self.prompt, 0)))[:, self.prompt :]

    def put_all(self, values: Tensor) -> Tensor:
        """Values of the contexts' tokens (R, P + T') as those of the episodes (B, P + T); 0 on padding."""
        real = self.source >= 0
        return values.new_zeros(self.shape.numel()).index_put((self.source[real],), values[real]).view(self.shape)

    def widened(self, multiple: int | None) -> ContextRows:
        """The same rows, padded to a multiple of that many tokens."""
        more = -self.source.size(1) % (multiple or 1)
        return replace(self, source=torch.nn.functional.pad(self.source, (0, more), value=-1))


def context_rows(mask: Tensor, contexts: Tensor) -> ContextRows:
    """Take the contexts of a batch apart.

    Args:
        mask: (B, P + T) the attention mask of prompts and completions.
        contexts: (B, T) the number of the context of each token behind the prompt, from 0; any number on padding.
    """
    prompt = mask.size(1) - contexts.size(1)
    real, numbers = mask.bool().cpu(), contexts.cpu()
    heads, rests = list[Tensor](), list[Tensor]()
    for row, (used, own) in enumerate(zip(real, numbers, strict=True)):
        offset = row * mask.size(1)
        ids = offset + prompt + used[prompt:].nonzero()[:, 0]
        own = own[used[prompt:]]
        heads.append(torch.where(used[:prompt], offset + torch.arange(prompt), -1))
        rests.append(ids[own == 0])
        for number in range(1, int(own.max()) + 1 if len(own) else 0):
            first, *_ = inside = ids[own == number]
            heads.append(torch.cat([torch.full((prompt - 1,), -1), first[None]]))
            rests.append(inside[1:])
    rest = torch.nn.utils.rnn.pad_sequence(rests, batch_first=True, padding_value=-1)
    return ContextRows(torch.cat([torch.stack(heads), rest], 1).to(mask.device), prompt, mask.shape)


def context_numbers(episodes: Sequence[TokenTrajectory], like: Tensor) -> Tensor | None:
    """(B, T) the number of the context of each token, in the width of `like`; None if every episode has one context."""
    if not any(episode.context_starts for episode in episodes):
        return None
    numbers = like.new_zeros(like.shape)
    for row, episode in zip(numbers, episodes, strict=True):
        for start in episode.context_starts:
            row[start:] += 1
    return numbers


@contextmanager
def contexts_apart(models: Iterable[torch.nn.Module], contexts: Tensor, multiple: int | None = None) -> Iterator[None]:
    """Within, the models read rows of B episodes context by context, and return values of the episodes' tokens.

    Both `labels` and returned values per token have TRL's layout: a value (B, L - 1) belongs to the next token.

    Args:
        models: the models, without wrappers of distributed training.
        contexts: (B, L - 1) as in `context_rows`; rows are padded on the right.
        multiple: pad the contexts to a multiple of that many tokens.
    """
    handles = list[Any]()
    for model in models:
        passes = _ContextPass(contexts, multiple)
        handles.append(model.register_forward_pre_hook(passes.before, with_kwargs=True))
        handles.append(model.register_forward_hook(passes.after))
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


class _ContextPass:
    """The hooks of one model."""

    def __init__(self, contexts: Tensor, multiple: int | None) -> None:
        self._contexts, self._multiple = contexts, multiple
        self._rows: ContextRows | None = None

    def before(self, model: Any, args: Any, given: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
        self._rows = rows = context_rows(given["attention_mask"], self._contexts).widened(self._multiple)
        mask = rows.mask
        apart = {"input_ids": rows.take(given["input_ids"]), "attention_mask": mask}
        if "labels" in given:
            apart["labels"] = torch.where(mask.bool(), rows.take(given["labels"]), -100)
        return args, {**given, **apart}

    def after(self, model: Any, args: Any, output: Any) -> Any:
        rows, self._rows = self._rows, None
        assert rows is not None
        width = rows.source.size(1) - 1
        for name, value in output.items():
            if isinstance(value, torch.Tensor) and value.dim() == 2:  # a learned prompt has values in front
                output[name] = rows.put(value[:, -width:])
        return output
