#!/usr/bin/env bash
# The ablation of table 2: one data set, four modes of training, three seeds each; every model is played.
#     bash ablation.sh [FOLDER]          BASE=CHECKPOINT  LIMIT=tasks of each family
# After a kill give the same command again: each command below continues, or finds its work done.
set -euo pipefail

folder=${1:-ablation} base=${BASE:-demo-base} limit=${LIMIT:-24}
mkdir -p "$folder"

# Conversations with errors and their corrections. The paper's come from GPT-4o: `refine scripts`, `refine trajectories`.
evalharness refine grounded --tasks alfworld --suite-seed 201 -n 160 --per-task 1 --error-runs 1-2 -o "$folder/data.jsonl"

for seed in 0 1 2; do # all modes of a seed first: a script that is stopped has compared them
    for mode in full no_refine_loss no_refine_data all_turns; do
        name=$mode-$seed
        evalharness tune --model "$base" --data "$folder/data.jsonl" --mode "$mode" --seed "$seed" \
            --max-length 3328 --too-long drop-any --lora-rank 12 --lr 1e-3 --batch 2 --max-steps 80 \
            -o "$folder/models/$name"
        evalharness run --model "$folder/models/$name" --model-name "$name" --suite open --tasks alfworld \
            --limit "$limit" --max-tokens 96 --label "mode=$mode" --label "training_seed=$seed" \
            -o "$folder/runs/$name"
    done
done

# A row a mode: the mean over its seeds, with an interval over seeds and tasks. Others are compared with the first.
evalharness paper table2 "$folder"/runs/{full,no_refine_loss,no_refine_data,all_turns}-*
