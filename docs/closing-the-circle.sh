#!/usr/bin/env bash
# Closing the circle: grounded data -> tuning -> checkpoints -> base against tuned, with this package's commands alone.
# Every command continues or skips what is there: start it again after anything.
#     bash closing-the-circle.sh FOLDER          (about three hours on two CPU cores)
set -euo pipefail

folder=${1:-circle}
alfworld=${ALFWORLD_SAMPLES:-480} pddl=${PDDL_SAMPLES:-320} steps=${STEPS:-320} limit=${LIMIT:-134} tokens=${TOKENS:-96}
mkdir -p "$folder"

# Data from worlds that no evaluation uses: played by those who know only what they have read, one wording of each thought.
evalharness refine grounded --tasks alfworld --suite-seed 101 -n "$alfworld" --per-task 1 --wordings 1 \
    --max-turns 22 --error-runs 0 -o "$folder/alfworld.jsonl"
evalharness refine grounded --tasks pddl --kinds gripper --suite-seed 101 -n "$pddl" --per-task 1 --wordings 1 \
    --max-turns 20 --error-runs 0 -o "$folder/pddl.jsonl"

# Training.
evalharness tune install
evalharness tune --model demo-base --data "$folder/alfworld.jsonl" "$folder/pddl.jsonl" -o "$folder/tuned" \
    --max-length 3328 --too-long drop-any --lora-rank 12 --lr 1e-3 --batch 2 --max-steps "$steps" \
    --save-every $(((steps + 7) / 8))

# Which checkpoint, on a suite seed of its own.
tasks=(--suite open --tasks alfworld,pddl --max-tokens "$tokens")
evalharness checkpoints "$folder/tuned" "${tasks[@]}" --suite-seed 301 --limit $(((limit + 3) / 4)) \
    -o "$folder/checkpoints"

# Before and after.
evalharness run --model demo-base "${tasks[@]}" --limit "$limit" -o "$folder/base"
evalharness run --model "$folder/tuned" "${tasks[@]}" --limit "$limit" -o "$folder/after"
evalharness compare "$folder/base" "$folder/after"
evalharness analyze "$folder/base" "$folder/after"
evalharness report "$folder/base" "$folder/after" -o "$folder/report.html"

# Other words, and ten attempts.
evalharness sweep --model "$folder/tuned" --family alfworld --suite open --max-tokens "$tokens" --limit "$limit" \
    -o "$folder/sweep"
evalharness bon --model "$folder/tuned" -n 10 --suite open --tasks alfworld --max-tokens "$tokens" --limit $(((limit + 3) / 4)) \
    -o "$folder/bon"
