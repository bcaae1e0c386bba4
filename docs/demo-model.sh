#!/usr/bin/env bash
# The demo model: grounded data -> tuning -> checkpoints -> base against tuned, with this package's commands alone.
# Every command continues or skips what is there: start it again after anything.
#     bash demo-model.sh FOLDER          (about three hours on two CPU cores)
set -euo pipefail

folder=${1:-demo-model}
percent=${PERCENT:-100} steps=${STEPS:-330} limit=${LIMIT:-134} tokens=${TOKENS:-128}
mkdir -p "$folder"
evalharness server install

# Data from worlds that no evaluation uses, played by agents without privileged information: about 1.3 million tokens.
# ScienceWorld's tasks are searched for once, a quarter of an hour.
data() { # NAME, conversations, options
    local file=$folder/$1.jsonl count=$(($2 * percent / 100))
    shift 2
    evalharness refine grounded --suite-seed 101 -n "$count" --per-task 1 --error-runs 0 "$@" -o "$file"
}
find=find-animal,find-living-thing,find-non-living-thing,find-plant
lifespan=lifespan-longest-lived,lifespan-longest-lived-then-shortest-lived,lifespan-shortest-lived
data alfworld 220 --tasks alfworld
data babyai 110 --tasks babyai --max-turns 16
data jericho 100 --tasks jericho
data pddl 130 --tasks pddl --kinds gripper --max-turns 14
data sciworld 100 --tasks sciworld --kinds "$find,$lifespan"

# Training.
evalharness tune install
evalharness tune --model demo-base --data "$folder"/{alfworld,babyai,jericho,pddl,sciworld}.jsonl -o "$folder/tuned" \
    --max-length 3328 --too-long drop --lora-rank 12 --lr 1e-3 --batch 2 --max-steps "$steps" \
    --save-every $(((steps + 7) / 8))

# Which checkpoint, on a suite seed of its own.
tasks=(--suite open --tasks all --max-tokens "$tokens")
evalharness checkpoints "$folder/tuned" "${tasks[@]}" --suite-seed 301 --limit $(((limit + 3) / 4)) \
    -o "$folder/checkpoints"

# Before and after.
evalharness run --model demo-base "${tasks[@]}" --limit "$limit" -o "$folder/base"
evalharness run --model "$folder/tuned" "${tasks[@]}" --limit "$limit" -o "$folder/after"
evalharness compare "$folder/base" "$folder/after"
evalharness show --behaviour "$folder/base" "$folder/after"
evalharness report "$folder/base" "$folder/after" -o "$folder/report.html"

# Other words, and ten attempts.
evalharness sweep --model "$folder/tuned" --tasks alfworld --suite open --max-tokens "$tokens" --limit "$limit" \
    -o "$folder/sweep"
evalharness bon --model "$folder/tuned" -n 10 --suite open --tasks alfworld --max-tokens "$tokens" --limit $(((limit + 3) / 4)) \
    -o "$folder/bon"
