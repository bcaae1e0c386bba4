#!/usr/bin/env bash
# Rounds in which a model learns from its own play (DAgger: Ross, Gordon & Bagnell, AISTATS 2011).
#     bash rounds.sh [FOLDER]          MODEL=CHECKPOINT  ROUNDS=3
# After a kill give the same command again; a larger ROUNDS adds rounds.
set -euo pipefail

folder=${1:-rounds} model=${MODEL:-demo} rounds=${ROUNDS:-3}
mkdir -p "$folder/data"

evaluate() { # ROUND: the validation suite, whose tasks stay out of the data
    evalharness run --model "$model" --model-name "round-$1" --label "round=$1" --suite open --suite-seed 301 \
        --tasks alfworld,pddl --draw 20 -o "$folder/runs/round-$1"
}

evaluate 0
parts=()
for ((round = 1; round <= rounds; round++)); do
    played=$folder/played-$round new=$folder/data/new-$round.jsonl all=$folder/data/all-$round.jsonl

    # Play tasks that are new in every round, and correct the errors.
    evalharness run --model "$model" --suite open --suite-seed $((400 + round)) --tasks alfworld,pddl --draw 40 \
        --temperature 1 -o "$played"
    evalharness refine correct "$played" --per-episode 2 --exclude-suite-seeds 301 -o "$new"

    # Join them with the data of earlier rounds, and train the model further.
    parts+=("$new")
    evalharness refine mix "${parts[@]}" --all --exclude-suite-seeds 301 -o "$all"
    evalharness tune --model "$model" --data "$all" --epochs 1 --max-length 3328 --too-long drop \
        -o "$folder/models/round-$round"
    model=$folder/models/round-$round
    evaluate "$round"
done

evalharness compare "$folder"/runs/*
