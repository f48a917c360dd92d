#!/usr/bin/env bash
# tsan.sh BUILD: runs the program with the thread sanitizer (make tsan) where threads of its own meet: the watchdog and its report, the checkpoint's
# thread beside training and loading, the thread that plans ahead of a supernet, the meter of energy, the encoders of an import. A data race ends a
# program at once with code 66, which no test expects. tests/thread_sanitizer.supp leaves out MPI's own threads; OpenMP makes none.
set -uo pipefail
cd "$(dirname "$0")/.."
build=$(realpath "$1")
# The watchdog ends a process without unwinding, and joins no thread.
export TSAN_OPTIONS="suppressions=$PWD/tests/thread_sanitizer.supp halt_on_error=1 exitcode=66 report_thread_leaks=0"
export OMP_NUM_THREADS=1 OMPI_MCA_ess_singleton_isolated=1
root=$(mktemp -d) status=0
trap 'rm -rf "$root"' EXIT
try() {   # NAME EXPECTED COMMAND...
  local name=$1 expected=$2 code
  shift 2
  timeout 300 "$@" >"$root/$name.log" 2>&1
  code=$?
  if [[ $code == "$expected" ]] && ! grep -q "WARNING: ThreadSanitizer" "$root/$name.log"; then
    echo "$name: clean"
  else
    status=1
    echo "$name: code $code, not $expected"
    grep -A 40 -m 1 "WARNING: ThreadSanitizer" "$root/$name.log" || tail -n 20 "$root/$name.log"
  fi
}
cat >"$root/gpt.yaml" <<END
seed: 3
model: {kind: gpt, layers: 2, width: 32, heads: 2, context: 16, vocabulary: 256, dropout: 0.1}
data: {train: [$PWD/data/alice.txt], validation: [$PWD/data/alice.txt]}
reproducible: {tensor: 2, data: 2}
train: {steps: 12, batch: 4, micro_batch: 1, evaluate_every: 4, evaluate_batches: 1}
checkpoint: {every: 2, background: auto}
guard: {replicas_every: 3}
optimizer: {kind: adamw, rate: {kind: constant, peak: 1.0e-3}}
device: {threads: 1}
END
cat >"$root/supernet.yaml" <<END
seed: 3
model: {kind: supernet, space: {name: two, decoder: {blocks: 4, candidates: [conv-3, mlp-2, attention-2]}}, width: 16, context: 16, vocabulary: 256}
data: {train: [$PWD/data/alice.txt], validation: [$PWD/data/alice.txt]}
supernet: {sampler: permutation, window: 8}
reproducible: {tensor: 2, data: 2}
train: {steps: 96, batch: 4, micro_batch: 1}
checkpoint: {every: 16}
search: {scores: 6, batches: 1, population: 4, parents: 2, steps: 2}
optimizer: {kind: adamw, rate: {kind: constant, peak: 1.0e-3}}
device: {threads: 1}
END
program=$build/mindpipe-train two=(tests/run_mpi.sh 2 "$build/mindpipe-train")
gpt=(train --config "$root/gpt.yaml" "run.dir=$root/gpt") supernet=("--config" "$root/supernet.yaml" "run.dir=$root/supernet")
try checkpoints 75 "$program" "${gpt[@]}" run.stop_after=7
try resumed_on_two_ranks 0 "${two[@]}" "${gpt[@]}" grid.data=2 train.zero=1
try pipeline 0 "${two[@]}" train --config "$root/gpt.yaml" "run.dir=$root/pipeline" grid.pipeline=2
try goes_back 0 "${two[@]}" train --config "$root/gpt.yaml" "run.dir=$root/back" grid.data=2 --inject nan@1:6,nan@1:7,nan@1:8
try another_copy 76 "${two[@]}" train --config "$root/gpt.yaml" "run.dir=$root/copy" grid.data=2 --inject flip@1:5
try watchdog 81 "${two[@]}" train --config "$root/gpt.yaml" "run.dir=$root/watchdog" grid.data=2 watchdog.step=3s --inject stop@1:5
try supernet 0 "$program" train "${supernet[@]}"
try supernet_on_two_stages 0 "${two[@]}" train --config "$root/supernet.yaml" "run.dir=$root/stages" grid.pipeline=2
try supernet_in_two_lanes 0 "${two[@]}" train --config "$root/supernet.yaml" "run.dir=$root/lanes" grid.supernet=2
try search 0 "$program" search "${supernet[@]}"
try import 0 "$program" data import --threads 4 --output "$root/pair" data/alice.txt
try watchdog_alone 0 "$build/tests/test_comm" --gtest_brief=1 --gtest_filter='Watchdog.*:RollCall*'
exit $status
