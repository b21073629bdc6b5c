#!/usr/bin/env bash
# GRPO with verl's own command. verl loads our agent loop as a plugin, and our settings are Hydra files.
#   examples/verl_grpo.sh MODEL OUT [Hydra overrides ...]
#   examples/verl_grpo.sh MODEL OUT --cfg job      prints the configuration without training (but makes the data)
# Needs the extra verl, an inference engine (vLLM or SGLang) and a GPU; `hardware=gpu8` or `nodes` for more.
set -euo pipefail

[ $# -ge 2 ] || { sed -n '2,5s/^# \{0,1\}//p' "$0" >&2; exit 2; }
model=$1 out=$2
shift 2

python=${PYTHON:-python}
config=$("$python" -m agentgym_envs verl config-path)
[ -e "$out/data/train.parquet" ] || "$python" -m agentgym_envs verl data AgentGym/TextCraft-v0 --out "$out/data"
exec "$python" -m verl.trainer.main_ppo \
    --config-path "$config" --config-name agentgym \
    scenario=textcraft algorithm=grpo hardware=gpu1 \
    actor_rollout_ref.model.path="$model" \
    data.train_files="$out/data/train.parquet" data.val_files="$out/data/val.parquet" \
    agentgym.trajectories="$out/trajectories" trainer.default_local_dir="$out/checkpoints" \
    "$@"
