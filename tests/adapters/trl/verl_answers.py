"""verl's advantages for a file of cases: `python verl_answers.py CASES ANSWERS`.

A separate process, since `import verl` sets environment variables, the root logger and `sys.excepthook`.
"""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch


def answers(case: dict[str, Any]) -> dict[str, torch.Tensor]:
    from verl.trainer.ppo import core_algos
    from verl.utils.torch_functional import masked_whiten

    rewards, values, mask = case["rewards"], case["values"], case["mask"].to(case["rewards"].dtype)
    groups = np.arange(len(rewards)) // case["group_size"]
    advantages, targets = core_algos.compute_gae_advantage_return(rewards, values, mask, case["gamma"], case["lam"])
    plus, returns = core_algos.compute_reinforce_plus_plus_outcome_advantage(
        rewards, mask, config=SimpleNamespace(gamma=case["gamma"])
    )
    found = {
        "ppo": advantages,
        "value_targets": targets,
        "reinforce++": plus,
        "token_returns": returns,
        "reinforce++-baseline": core_algos.compute_reinforce_plus_plus_baseline_outcome_advantage(
            rewards, mask, groups
        )[0],
        "rloo": core_algos.compute_rloo_outcome_advantage(rewards, mask, groups)[0],
        "grpo": core_algos.compute_grpo_outcome_advantage(rewards, mask, groups)[0],
        "dr_grpo": core_algos.compute_grpo_outcome_advantage(rewards, mask, groups, norm_adv_by_std_in_grpo=False)[0],
        "whiten": masked_whiten(values, mask),
    }
    return {name: value * mask for name, value in found.items()}


if __name__ == "__main__":
    torch.save([answers(case) for case in torch.load(sys.argv[1])], sys.argv[2])
