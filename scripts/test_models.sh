#!/usr/bin/env bash
# test_models.sh PROGRAM [NAME ...]: trains the tiny models of bert, transformer, evolved, vit and wide-resnet, on two processors, until they know
# their task, and evaluates them on held-out samples (make test-models). Of masked letters of sums 80 % must be found, of dates 99 % written
# without a mistake, of shapes 97 % told apart, each within 180 seconds from start to end. evolved is an Evolved Transformer of a cell on each
# side; evolved-tiny, which is asked for by name, has 3 + 4, and 900 seconds. Exit code 1 if one model does less.
set -euo pipefail
cd "$(dirname "$0")/.."
program=$1; shift
(($#)) || set -- bert transformer evolved vit wide-resnet
cores=$(taskset -cp $$ | sed 's/.*: //' | tr ',' '\n' | awk -F- '{ for (i = $1; i <= ($2 ? $2 : $1); ++i) print i }' | head -n 2 | paste -sd,)
runs=$(mktemp -d)
trap 'rm -rf "$runs"' EXIT
failed=0

# learns NAME SECONDS MEMBER PERCENT SETTING ...: within SECONDS seconds the share that eval prints as MEMBER is PERCENT or more
learns() {
  local name=$1 most_seconds=$2 member=$3 percent=$4 start=$SECONDS seconds share verdict=good settings=("run.dir=$runs/$1" "${@:5}")
  taskset -c "$cores" "$program" --config "configs/$name.yaml" train.evaluate_every=0 trace.steps=0 "${settings[@]}" >"$runs/$name.log" 2>&1 ||
    { cat "$runs/$name.log" >&2; exit 1; }
  seconds=$((SECONDS - start))
  share=$(taskset -c "$cores" "$program" eval --config "configs/$name.yaml" train.evaluate_batches=64 "${settings[@]}" 2>>"$runs/$name.log" |
    sed -nE "s/.*\"$member\": ([0-9.e-]+).*/\1/p")
  awk -v share="${share:-0}" -v percent="$percent" -v seconds="$seconds" -v most="$most_seconds" \
    'BEGIN { exit !(100 * share >= percent && seconds <= most) }' || { verdict=FAILED; failed=1; }
  awk -v name="$name" -v member="$member" -v share="${share:-0}" -v percent="$percent" -v seconds="$seconds" -v verdict="$verdict" \
    'BEGIN { printf "%s: %s %.2f %% (%s %% are asked for) after %d s of training: %s\n", name, member, 100 * share, percent, seconds, verdict }'
}

for name; do
  case $name in
    bert) learns bert-tiny 180 validation_accuracy 80 train.steps=1500 ;;
    transformer) learns transformer-tiny 180 validation_exact 99 train.steps=2000 ;;
    evolved) learns evolved-transformer-dates 180 validation_exact 99 train.steps=600 ;;
    evolved-tiny) learns evolved-transformer-tiny 900 validation_exact 99 ;;
    vit) learns vit-tiny 180 validation_accuracy 97 train.steps=3000 ;;
    wide-resnet) learns wide-resnet-tiny 180 validation_accuracy 97 train.steps=600 'optimizer.rate.drops=[350,500]' ;;
    *) echo "test_models.sh: $name is none of bert, transformer, evolved, evolved-tiny, vit, wide-resnet" >&2; exit 2 ;;
  esac
done
exit "$failed"
