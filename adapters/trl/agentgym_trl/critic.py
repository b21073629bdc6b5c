"""The critic of PPO: a model of the return from each token on, and its training.

The critic has its own optimizer, which steps together with the policy's. It is not sharded: every process holds all
weights, and gradients are summed over processes at each step. So it works with DDP, FSDP and DeepSpeed, and the result
does not depend on the split of a batch over processes and micro-batches.

Its weights are always float32, since bfloat16 would round away Adam's small steps: 16 bytes per parameter with gradient
and optimizer, plus activations. With `--bf16` only its forward pass runs in bfloat16. All its weights are trained, even
if the policy has LoRA adapters; for a large policy, choose a smaller model with the same vocabulary.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from accelerate.utils import broadcast
from torch import Tensor, nn
from transformers.modeling_layers import GradientCheckpointingLayer

from agentgym_envs.errors import UsageError
from agentgym_trl.context_rows import context_rows
from agentgym_trl.models import load_model, unsharded
from agentgym_trl.padding_free import PaddingFree, model_inputs

_POLICY_ONLY = ("dtype", "torch_dtype", "device_map", "quantization_config")
"""Arguments that load a policy but not its critic, which is trained in float32 on the accelerator's device."""


class Critic(nn.Module):
    """A language model's backbone with a scalar head, whose weights are initialised to 0."""

    def __init__(self, backbone: Any) -> None:
        """`backbone` is a model without its language head, which returns hidden states."""
        super().__init__()
        self.backbone = backbone
        self.head = nn.Linear(backbone.config.get_text_config().hidden_size, 1, bias=False)
        nn.init.zeros_(self.head.weight)
        self.padding_free: PaddingFree | None = None

    def forward(self, ids: Tensor, mask: Tensor) -> Tensor:
        """(B, S) token ids and their attention mask, padded anywhere -> (B, S) the value after each token, else 0.

        Padding inside a row is removed first: sliding windows and positions would count it.
        """
        if self.padding_free is not None and mask.any():
            rows = self.padding_free.pack(ids, mask)
            hidden = self.backbone(**model_inputs(rows), use_cache=False).last_hidden_state
            packed = self._read(hidden)[0]
            return torch.where(rows.index >= 0, packed[rows.index.clamp(min=0)], 0.0)
        width = max(int(mask.sum(1).max()), 1)
        order = mask.argsort(dim=1, descending=True, stable=True)[:, :width]
        used = mask.gather(1, order)
        hidden = self.backbone(input_ids=ids.gather(1, order), attention_mask=used, use_cache=False).last_hidden_state
        values = self._read(hidden) * used
        return values.new_zeros(mask.shape).scatter(1, order, values)

    def _read(self, hidden: Tensor) -> Tensor:
        with torch.autocast(hidden.device.type, enabled=False):  # bfloat16 has too few bits for a value
            values: Tensor = self.head(hidden.float()).squeeze(-1)
        return values

    def checkpoint_gradients(self) -> None:
        """Recompute layers in the backward pass to save memory, still without dropout."""
        self.backbone.gradient_checkpointing_enable({"use_reentrant": False})
        for module in self.backbone.modules():
            if isinstance(module, GradientCheckpointingLayer):
                module.training = True  # required by transformers; the modules in the layer stay in evaluation mode
                if isinstance(getattr(module, "dropout", None), float):
                    module.dropout = 0.0


@dataclass(frozen=True, slots=True)
class CriticOptions:
    """Training options of a critic: `clip_range` of PPO's value clipping (None: off), `max_grad_norm` (0: off)."""

    learning_rate: float = 1e-5
    lr_warmup_steps: int = 0
    clip_range: float | None = 0.2
    max_grad_norm: float = 1.0
    gradient_checkpointing: bool = False


class CriticLearner:
    """Values, losses and steps of a critic."""

    def __init__(self, critic: Critic, options: CriticOptions, accelerator: Any) -> None:
        """Move the critic to the accelerator's device, in evaluation mode (no dropout), equal in all processes."""
        self.critic = critic.float().to(accelerator.device).eval()
        for tensor in (*self.critic.parameters(), *self.critic.buffers()):
            broadcast(tensor.data)  # under FSDP, only the first process of a machine has loaded the weights
        if options.gradient_checkpointing:
            self.critic.checkpoint_gradients()
        self._options, self._accelerator = options, accelerator
        self._optimizer = torch.optim.AdamW(self.critic.parameters(), lr=options.learning_rate, weight_decay=0.0)
        self._steps = 0
        self._clear()

    @torch.no_grad()
    def values(
        self, output: dict[str, Any], bootstrap_ids: Sequence[Sequence[int]], rows: int
    ) -> tuple[Tensor, Tensor]:
        """Return the values before each token after the prompt (B, T), and the values after `bootstrap_ids` (B,).

        The latter are 0 for an episode without `bootstrap_ids`. Computes `rows` rows at a time.
        """
        prompt, completion = output["prompt_ids"], output["completion_ids"]
        ids, mask = _pad_right(bootstrap_ids, prompt)
        contexts = output.get("contexts")
        parts = []
        for begin in range(0, len(prompt), rows):
            part = slice(begin, begin + rows)
            parts.append(
                self._forward(
                    [prompt[part], completion[part], ids[part]],
                    [output["prompt_mask"][part], output["completion_mask"][part], mask[part]],
                    contexts[part] if contexts is not None else None,
                )
            )
        values = torch.cat(parts)
        first, end = prompt.size(1) - 1, prompt.size(1) + completion.size(1)
        last = end + mask.sum(1) - 1
        after = values.gather(1, last[:, None]).squeeze(1)
        return values[:, first : end - 1], torch.where(mask.any(1), after, 0.0)

    def learn(self, inputs: dict[str, Any]) -> None:
        """Accumulate the gradient of half the sum of the (clipped) squared errors on a micro-batch's answer tokens.

        `inputs` has `value_targets`, `old_values` and `value_mask` (B, T) in addition to TRL's ids and masks.
        Source of the clipping: PPO's reference implementation; Engstrom et al., arXiv 2005.12729, section 2.
        """
        prompt = inputs["prompt_ids"]
        masks = [inputs["prompt_mask"], inputs["completion_mask"]]
        values = self._forward([prompt, inputs["completion_ids"]], masks, inputs.get("contexts"))
        values = values[:, prompt.size(1) - 1 : -1]
        mask, old, target = inputs["value_mask"].bool(), inputs["old_values"], inputs["value_targets"]
        errors = (values - target).square()
        if (limit := self._options.clip_range) is not None:
            moved = values - old
            clipped = (old + moved.clamp(-limit, limit) - target).square()
            self._clipped += float((mask & (clipped > errors) & (moved.abs() > limit)).sum())
            errors = torch.maximum(errors, clipped)
        loss = 0.5 * torch.where(mask, errors, 0.0).sum()
        torch.autograd.backward(loss)
        self._loss += float(loss.detach())
        self._count += float(mask.sum())

    def step(self) -> dict[str, float]:
        """Take an optimizer step on the mean over the trained tokens of all processes; return its metrics."""
        sums = torch.tensor([self._loss, self._clipped, self._count], device=self._accelerator.device)
        loss, clipped, count = self._accelerator.reduce(sums, reduction="sum").tolist()
        weights = [weight for weight in self.critic.parameters() if weight.requires_grad]
        for weight in weights:
            gradient = weight.grad if weight.grad is not None else torch.zeros_like(weight)
            weight.grad = self._accelerator.reduce(gradient, reduction="sum") / max(count, 1.0)
        norm = nn.utils.clip_grad_norm_(weights, self._options.max_grad_norm or float("inf"))
        self._steps += 1
        rate = self._options.learning_rate * min(1.0, self._steps / max(self._options.lr_warmup_steps, 1))
        for group in self._optimizer.param_groups:
            group["lr"] = rate
        if count:
            self._optimizer.step()
        self._clear()
        count = max(count, 1.0)
        metrics = {"loss": loss / count, "clip_fraction": clipped / count, "grad_norm": float(norm), "lr": rate}
        return {f"critic/{name}": value for name, value in metrics.items()}

    def save(self, path: Path) -> None:
        """Write weights, optimizer and step count to a file."""
        state = {"critic": self.critic.state_dict(), "optimizer": self._optimizer.state_dict(), "steps": self._steps}
        torch.save(state, path)

    def load(self, path: Path) -> None:
        """Restore the state that `save` wrote. Raises UsageError if there is none, or one of another model."""
        if not path.is_file():
            raise UsageError(f"{path.parent} has no critic: it is not a checkpoint of ppo")
        state = torch.load(path, map_location=self._accelerator.device, weights_only=True)
        try:
            self.critic.load_state_dict(state["critic"])
        except RuntimeError:
            raise UsageError(f"{path} belongs to another critic; give the same --critic-model as before") from None
        self._optimizer.load_state_dict(state["optimizer"])
        self._steps = state["steps"]

    def _forward(self, ids: list[Tensor], masks: list[Tensor], contexts: Tensor | None) -> Tensor:
        """The value after each token of prompts, completions and what follows; see `context_rows` for `contexts`."""
        # The accelerator's own context does nothing under DeepSpeed, and would need a scaler with fp16.
        reduced = self._accelerator.mixed_precision == "bf16"
        with torch.autocast(self._accelerator.device.type, torch.bfloat16, enabled=reduced):
            if contexts is None:
                values: Tensor = self.critic(torch.cat(ids, 1), torch.cat(masks, 1))
                return values
            last = contexts.max(1, keepdim=True).values
            after = [last.expand(-1, part.size(1)) for part in ids[2:]]
            rows = context_rows(torch.cat(masks, 1), torch.cat([contexts, *after], 1))
            return rows.put_all(self.critic(rows.take(torch.cat(ids, 1)), rows.mask))

    def _clear(self) -> None:
        self._optimizer.zero_grad()
        self._loss, self._clipped, self._count = 0.0, 0.0, 0.0


def load_backbone(name: str | None, policy: Any, **kwargs: Any) -> Any:
    """The backbone of a critic: that of the model `name`, or a copy of the policy's (a model, or a name).

    `kwargs` are the arguments with which the policy is loaded.

    Raises:
        UsageError: the model does not load.
    """
    if name is None and not isinstance(policy, str):
        return _copy_backbone(policy)
    dropped = _POLICY_ONLY if name in (None, policy) else (*_POLICY_ONLY, "revision")
    kept = {key: value for key, value in kwargs.items() if key not in dropped}
    try:
        with unsharded():
            return load_model(name or policy, dtype=torch.float32, **kept).base_model
    except UsageError as error:
        raise UsageError(f"the critic's model does not load: {error}") from None


def check_vocabulary(backbone: Any, size: int) -> None:
    """Raise UsageError if the critic has embeddings for fewer than `size` tokens."""
    known = backbone.get_input_embeddings().num_embeddings
    if known < size:
        raise UsageError(
            f"the critic has {known} tokens and the policy's tokenizer {size}; "
            "--critic-model must have the policy's vocabulary"
        )


def _copy_backbone(policy: Any) -> Any:
    """A trainable copy of the policy's backbone, with adapters merged into the weights."""
    copied = copy.deepcopy(policy)
    merged = copied.merge_and_unload() if hasattr(copied, "merge_and_unload") else copied
    return merged.base_model.requires_grad_(True)


def explained_variance(values: Tensor, targets: Tensor, mask: Tensor) -> float:
    """1 - Var(targets - values) / Var(targets) over the masked tokens: 1 is perfect, 0 no better than the mean."""
    if int(mask.sum()) < 2:
        return 0.0
    total = targets[mask].var()
    return float(1 - (targets - values)[mask].var() / total) if total > 1e-12 else 0.0


def _pad_right(rows: Sequence[Sequence[int]], like: Tensor) -> tuple[Tensor, Tensor]:
    """Ids and mask (B, N), padded on the right with 0; N may be 0."""
    width = max((len(row) for row in rows), default=0)
    ids = [list(row) + [0] * (width - len(row)) for row in rows]
    mask = [[1] * len(row) + [0] * (width - len(row)) for row in rows]
    shape = (len(rows), width)
    return (like.new_tensor(ids).view(shape), like.new_tensor(mask).view(shape))
