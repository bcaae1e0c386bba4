#!/usr/bin/env bash
# The paper's ablation, in one family (ALFWorld), by a small model: bash docs/claims-at-small-size.sh [FOLDER]
# Table 2 (what is trained, at equal data), perturbation, error recovery, scaling over three sizes of data. Every command
# continues or skips what is there already. CONVERSATIONS, STEPS and LIMIT make it shorter or longer.
# Two CPU cores: 100 minutes.
set -euo pipefail

folder=${1:-claims}
conversations=${CONVERSATIONS:-160} steps=${STEPS:-80} limit=${LIMIT:-24}
play=(--suite open --max-tokens 96 --limit "$limit")
mkdir -p "$folder"
evalharness server install
evalharness tune install

data() { # How many conversations; the first ones are the same for every number.
    evalharness refine grounded --tasks alfworld --suite-seed 201 -n "$1" --per-task 1 --wordings 1 --max-turns 24 \
        --error-runs 1-2 -o "$folder/alfworld-$1.jsonl"
}

train() { # NAME, conversations, further options
    local name=$1 set=$folder/alfworld-$2.jsonl
    shift 2
    evalharness tune --model demo-base --data "$set" -o "$folder/$name" --max-length 3328 --too-long drop-any \
        --lora-rank 12 --lr 1e-3 --batch 2 "$@"
}

data "$conversations"
modes=(full no_refine_loss no_refine_data all_turns)
for mode in "${modes[@]}"; do
    train "$mode" "$conversations" --mode "$mode" --max-steps "$steps"
    evalharness sweep --model "$folder/$mode" --tasks alfworld --perturb P1 "${play[@]}" -o "$folder/$mode-sweep"
done
for share in 2 4; do # `full` above is the whole of it
    few=$((conversations / share))
    data "$few"
    train "full-$few" "$few" --max-steps $((steps / share))
    evalharness run --model "$folder/full-$few" --tasks alfworld "${play[@]}" -o "$folder/full-$few-run"
done

# Before any training: every reply of it fills its 96 tokens, so fewer tasks.
evalharness run --model demo-base --tasks alfworld "${play[@]}" --limit 10 -o "$folder/before"

plain=()
for mode in "${modes[@]}"; do plain+=("$folder/$mode-sweep/unperturbed"); done
evalharness compare "${plain[@]}"
evalharness analyze "$folder/before" "${plain[@]}"
