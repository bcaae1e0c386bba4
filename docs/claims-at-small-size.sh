#!/usr/bin/env bash
# The paper's claims asked again of a small model: bash docs/claims-at-small-size.sh [FOLDER]
# Table 2 (what is trained, at equal data), perturbation, scaling over three sizes of data. Every command continues or
# skips what is there already. SAMPLES, STEPS and LIMIT make it shorter or longer.
set -euo pipefail

folder=${1:-claims}
samples=${SAMPLES:-240} steps=${STEPS:-30} limit=${LIMIT:-40}
tasks=(--suite open --max-tokens 96 --limit "$limit")
mkdir -p "$folder"
evalharness tune install

data=$folder/alfworld.jsonl
evalharness refine grounded --tasks alfworld --suite-seed 201 -n "$samples" --per-task 1 --error-runs 1-3 -o "$data"

train() { # NAME, data set, further options
    local name=$1 set=$2
    shift 2
    evalharness tune --model demo-base --data "$set" -o "$folder/$name" --lora-rank 12 --lr 1e-3 --batch 8 "$@"
    evalharness sweep --model "$folder/$name" --family alfworld --perturb P1 P3 "${tasks[@]}" -o "$folder/$name-sweep"
}

for mode in full no_refine_loss no_refine_data all_turns; do
    train "$mode" "$data" --mode "$mode" --max-steps "$steps"
done
for share in 4 2; do # `full` above is the whole of it
    few=$((samples / share))
    evalharness refine grounded --tasks alfworld --suite-seed 201 -n "$few" --per-task 1 --error-runs 1-3 \
        -o "$folder/alfworld-$few.jsonl"
    train "full-$few" "$folder/alfworld-$few.jsonl" --max-steps $((steps / share))
done

plain=()
for mode in full no_refine_loss no_refine_data all_turns; do plain+=("$folder/$mode-sweep/none"); done
evalharness compare "${plain[@]}"
evalharness analyze "${plain[@]}"
