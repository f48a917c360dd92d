#!/usr/bin/env bash
# demo_balance.sh PROGRAM: four emulated stages of which one is slow for a while: the cut follows, and goes back; then two
# real ranks of which one becomes slow, with the weights of the run that nobody disturbs (make demo-balance). Everything is
# below runs/demo-balance.
set -euo pipefail
cd "$(dirname "$0")/.."
program=$1 folder=runs/demo-balance slow_from=13 slow_until=36
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_mpi_yield_when_idle=1
rm -rf "$folder"; mkdir -p "$folder"
cat >"$folder/config.yaml" <<END
run: {dir: $folder/run}
model: {kind: gpt, layers: 11, width: 128, heads: 4, context: 64, vocabulary: 256, tied: false}
data: {train: [data/alice.txt]}
train: {steps: 44, batch: 8, micro_batch: 2}
optimizer: {kind: adamw, rate: {kind: constant, peak: 1.0e-3}}
device: {threads: 1, description: core}
END
train() { # RANKS SETTING...
  local ranks=$1; shift
  mpirun --oversubscribe --bind-to none -n "$ranks" "$program" train --config "$folder/config.yaml" grid.pipeline="$ranks" "$@" >"$folder/log" 2>&1 ||
    { cat "$folder/log" >&2; exit 1; }
}
say() { grep -oE '(stage [0-9]+ takes [0-9.]+ times as long for|all stages are about|since step [0-9]+ a step).*' "$folder/log"; }

# Speeds of a run, four steps a line, with the blocks of each stage where they change.
draw() {
  python3 - "$1/metrics.jsonl" <<'PYTHON'
import json, sys
lines = [json.loads(line) for line in open(sys.argv[1])]
most, together = max(line["tokens_per_second"] for line in lines), 4
for first in range(0, len(lines), together):
    part = lines[first:first + together]
    speed = sum(line["tokens_per_second"] for line in part) / len(part)
    cuts = [line["cuts"] for line in part if "cuts" in line]
    edges = [0, *cuts[-1], 24] if cuts else []
    blocks = "   blocks " + " ".join(str(end - begin) for begin, end in zip(edges, edges[1:])) if cuts else ""
    print(f"  step {part[0]['step']:>3} {'#' * round(50 * speed / most):<50} {speed:>7.0f} tokens/s{blocks}")
PYTHON
}

echo "1. four emulated stages of 24 blocks; stage 1 computes twice as long in steps $slow_from to $slow_until; they report every 5 steps (repartition.every=5)"
train 4 device.kind=emulated model.width=256 train.batch=16 train.steps=60 run.dir="$folder/emulated" repartition.every=5 --inject "slow@1:$slow_from-$slow_until:2"
draw "$folder/emulated"
say
echo; echo "2. two ranks that compute; stage 1 computes three times as long from step $slow_from on"
train 2 run.dir="$folder/slow" repartition.every=5 --inject "slow@1:$slow_from:3"
draw "$folder/slow"
say
echo; echo "3. the same training, which nobody disturbs and whose blocks stay: the same weights"
train 2 run.dir="$folder/still"
sha256sum "$folder"/{still,slow}/model.safetensors
cmp "$folder"/{still,slow}/model.safetensors
