#!/usr/bin/env bash
# From grounded data to a measured model: bash docs/closing-the-circle.sh [FOLDER]
# Every command continues or skips what is there already, so that the script may be started again at any time.
# Two cores: about four hours. SAMPLES, STEPS and LIMIT make it shorter or longer.
set -euo pipefail

folder=${1:-circle}
babyai=${BABYAI_SAMPLES:-400} alfworld=${ALFWORLD_SAMPLES:-500} steps=${STEPS:-100} limit=${LIMIT:-40}
mkdir -p "$folder"

# Data from worlds that no evaluation uses.
evalharness refine grounded --tasks babyai --suite-seed 101 -n "$babyai" --per-task 1 --max-turns 14 \
    --error-runs 0-1 -o "$folder/babyai.jsonl"
evalharness refine grounded --tasks alfworld --suite-seed 101 -n "$alfworld" --per-task 2 --search 8 \
    --max-turns 18 --error-runs 0-1 -o "$folder/alfworld.jsonl"

# Training. Erroneous turns are read and not trained.
evalharness tune install
evalharness tune --model demo --data "$folder/babyai.jsonl" "$folder/alfworld.jsonl" -o "$folder/tuned" \
    --max-length 2048 --too-long drop --lora-rank 12 --lr 1e-3 --batch 8 --max-steps "$steps" \
    --save-every $(((steps + 4) / 5))

# Which checkpoint, on a suite seed of its own.
tasks=(--suite open --tasks babyai,alfworld --max-tokens 96)
evalharness checkpoints "$folder/tuned" "${tasks[@]}" --suite-seed 301 --limit $(((limit + 1) / 2)) \
    -o "$folder/checkpoints"

# Before and after.
evalharness run --model demo "${tasks[@]}" --limit "$limit" -o "$folder/base"
evalharness run --model "$folder/tuned" "${tasks[@]}" --limit "$limit" -o "$folder/after"
evalharness compare "$folder/base" "$folder/after"
evalharness analyze "$folder/base" "$folder/after"
evalharness report "$folder/base" "$folder/after" -o "$folder/report.html"

# Other words, and ten attempts.
evalharness sweep --model "$folder/tuned" --family alfworld --suite open --max-tokens 96 --limit "$limit" \
    -o "$folder/sweep"
evalharness bon --model "$folder/tuned" -n 10 --suite open --tasks babyai --max-tokens 96 --limit "$limit" \
    -o "$folder/bon"
