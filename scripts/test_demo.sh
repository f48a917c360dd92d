#!/usr/bin/env bash
# test_demo.sh PROGRAM [INSTRUCTIONS ...]: the whole demo, on two processors, with each of these instruction sets (make test-demo). Of the words
# that it writes 70 % or more must stand in the book, its steps must take at most 90 seconds, and its last validation loss must be the least. Exit
# code 1 if one demo does less.
set -euo pipefail
cd "$(dirname "$0")/.."
program=$1; shift
(($#)) || set -- $("$program" --version | sed -n "s/^  this processor *//p")
cores=$(taskset -cp $$ | sed 's/.*: //' | tr ',' '\n' | awk -F- '{ for (i = $1; i <= ($2 ? $2 : $1); ++i) print i }' | head -n 2 | paste -sd,)
failed=0
for instructions in "$@"; do
  output=$(taskset -c "$cores" scripts/demo.sh "$program" device.instructions="$instructions" 2>&1) || { echo "$output" >&2; exit 1; }
  share=$(sed -nE 's/^([0-9]+) % of its words.*/\1/p' <<<"$output")
  seconds=$(awk -F'"seconds": ' '{ split($2, rest, ","); sum += rest[1] } END { printf "%d", sum }' runs/demo/metrics.jsonl)
  validation=$(sed -nE 's/^(validation loss: .*)/\1/p' <<<"$output")
  least=$(sed -E 's/validation loss: (.*) at step.*/\1/' <<<"$validation" | awk '{ last = $NF; for (i = 1; i <= NF; ++i) if ($i < last) exit; print "last" }')
  verdict=good
  [[ $least == last ]] && ((share >= 70 && seconds <= 90)) || { verdict=FAILED; failed=1; }
  echo "$instructions: $share % of the words stand in the book, $seconds s of steps, $validation: $verdict"
done
exit "$failed"
