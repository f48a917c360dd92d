#!/usr/bin/env bash
# at_once.sh COUNT COMMAND...: the tests of a program that wait for most of their time, in so many processes at once, each with its share of them:
# a program of GoogleTest knows its share by itself, a file of unittest by tests/shares.py. What each has said comes at its end.
count=${1:?at_once.sh COUNT COMMAND...} code=0
shift
export GTEST_TOTAL_SHARDS=$count
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
for ((share = 0; share < count; ++share)); do
  GTEST_SHARD_INDEX=$share "$@" >"$folder/$share" 2>&1 &
  shares[share]=$!
done
for ((share = 0; share < count; ++share)); do
  wait "${shares[share]}" || code=$?
  cat "$folder/$share"
done
exit $code
