#!/usr/bin/env bash
# fuzz.sh BUILD SECONDS [FUZZER...]: runs fuzzers of tests/fuzz one after the other, all or those that are named, for so many seconds each, from the
# files of tests/fuzz/corpora and what earlier runs found (BUILD/found/FUZZER). Prints inputs a second and findings; the input of a finding stays in
# BUILD/findings, and goes into tests/fuzz/corpora once it is mended. Code 1 after a finding.
set -euo pipefail
cd "$(dirname "$0")/.."
build=$1 seconds=$2
shift 2
if (($# == 0)); then
  mapfile -t names < <(find tests/fuzz -name '*_fuzz.cpp' -printf '%f\n' | sed 's/_fuzz\.cpp$//' | sort)
  set -- "${names[@]}"
fi
mkdir -p "$build/findings"
# An allocation of 2 GiB, 4 GiB in all, or ten seconds for one input are findings as crashes are.
limits=(-malloc_limit_mb=2048 -rss_limit_mb=4096 -timeout=10 -max_len=65536)
status=0
for name; do
  found=$build/found/$name log=$build/findings/$name.log fuzzer=$build/tests/fuzz/fuzz_$name
  mkdir -p "$found"
  dictionary=()
  [ ! -e "tests/fuzz/$name.dict" ] || dictionary=("-dict=tests/fuzz/$name.dict")
  result=0 inputs=0 end=$((SECONDS + seconds))
  while ((SECONDS < end)); do
    result=0
    "$fuzzer" -max_total_time=$((end - SECONDS)) -print_final_stats=1 -artifact_prefix="$build/findings/$name-" "${limits[@]}" "${dictionary[@]}" \
      "$found" "tests/fuzz/corpora/$name" >"$log" 2>&1 || result=$?
    inputs=$((inputs + $(sed -n 's/^stat::number_of_executed_units: *//p' "$log" | grep . || echo 0)))
    [ "$result" = 70 ] || break
    # Ten seconds by the clock are none of the processor's on a machine that does other work: the input alone tells.
    slow=$(sed -n 's/.*Test unit written to \(.*-timeout-.*\)/\1/p' "$log")
    (ulimit -t 10; exec "$fuzzer" "${limits[@]}" -timeout=600 "$slow") >/dev/null 2>&1 || break
    rm -f "$slow" "$build/findings/$name"-slow-unit-*
    result=0
  done
  rate=$((inputs / seconds))
  if [ "$result" = 0 ]; then
    echo "$name: $inputs inputs in $seconds s, $rate a second; no finding"
  else
    status=1
    echo "$name: a finding after $inputs inputs: $(grep -m 1 -E '^SUMMARY|a refusal that is none|ERROR' "$log" || tail -n 1 "$log") ($log)"
  fi
done
exit $status
