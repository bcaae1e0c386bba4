#!/usr/bin/env bash
# What a GPU gives, in about 12 minutes (estimated) after evalharness server install and evalharness tune install:
#   a  416 tasks x 30 turns with a model of LLaMA-3-8B's shape: turns/s, and tokens/s beside vLLM's own client
#   b  greedy replies with 1, 16, 64 and 256 requests in flight: how many differ
#   c  tune with LoRA at the same shape: tokens/s, and memory beside the forecast of --dry-run
#   d  from demo-base to 90 % of ALFWorld: seconds for data, training and evaluation
#     bash benchmarks/gpu.sh FOLDER            SMALL=1: demo-base and a few tasks, on a CPU, too
# A part that has ended is not run again: start it again after anything.
set -euo pipefail

folder=${1:-gpu} here=$(dirname "$0")
mkdir -p "$folder"

if [ -n "${SMALL:-}" ]; then
    model=demo-base tasks=alfworld:0-3,babyai:0-3 lengths=(12x3) in_flight=1,4 requests=8
    data=12 steps=2 play=(--limit 4 --max-turns 6 --max-tokens 32) length=(--max-length 3328 --too-long drop)
else
    model=$folder/llama-8b tasks=all lengths=(60x30 256x3) in_flight=1,16,64,256 requests=256
    data=220 steps=80 play=(--max-tokens 128) length=(--max-length 3328 --too-long drop)
fi

part() { # NAME, command: once, with its output in NAME.txt and its seconds in seconds.txt
    local name=$1 began=$SECONDS
    shift
    [ -e "$folder/$name.done" ] && return
    echo "== $name"
    "$@" 2>&1 | tee "$folder/$name.txt"
    echo "$name $((SECONDS - began)) s" | tee -a "$folder/seconds.txt"
    touch "$folder/$name.done"
}

memory() { # the command, and the largest memory of the first GPU meanwhile
    local log=$folder/memory.txt
    if command -v nvidia-smi > /dev/null; then
        nvidia-smi --query-gpu=memory.used --format=csv,noheader --id=0 --loop=1 > "$log" &
        trap "kill $!" RETURN
    fi
    "$@"
    [ ! -e "$log" ] || echo "memory at most: $(sort -n "$log" | tail -1)"
}

[ -n "${SMALL:-}" ] || part model python "$here/gpu.py" model "$model"
part data evalharness refine grounded --suite-seed 101 --tasks alfworld -n $data --per-task 1 --error-runs 0 \
    -o "$folder/alfworld.jsonl"
training=(--data "$folder/alfworld.jsonl" "${length[@]}" --lora-rank 12 --lr 1e-3 --batch 2)

for length in "${lengths[@]}"; do # tokens of a reply x turns of an episode
    part "a-$length" python "$here/gpu.py" play "$model" --tasks $tasks --tokens "${length%x*}" --turns "${length#*x}" \
        -o "$folder/run-$length" --json "$folder/a-$length.json"
done

part b-run evalharness run --model oracle --suite open --draw 60 -o "$folder/oracle"
part b-requests evalharness export --format openai-chat -o "$folder/requests.jsonl" "$folder/oracle"
part b python "$here/determinism.py" "$folder/requests.jsonl" --model "$model" --in-flight $in_flight \
    --requests $requests --repeats 1 --max-tokens 24 --json "$folder/b.json"

part c-forecast evalharness tune --model "$model" "${training[@]}" --max-steps 10 --dry-run
part c memory evalharness tune --model "$model" "${training[@]}" --max-steps $((steps < 10 ? steps : 10)) -o "$folder/c"

part d-training evalharness tune --model demo-base "${training[@]}" --max-steps $steps -o "$folder/d"
part d-evaluation evalharness run --model "$folder/d" --suite open --tasks alfworld "${play[@]}" -o "$folder/d-run"
cat "$folder/seconds.txt"
