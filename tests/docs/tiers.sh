#!/usr/bin/env bash
# tiers.sh CTEST BUILD: each test of a build is quick or thorough, or neither make test nor make test-all would run it.
set -euo pipefail
ctest=$1 build=$2
names() { "$ctest" --test-dir "$build" -N "$@" | sed -n 's/^ *Test *#[0-9]*: //p' | sort; }
without=$(comm -23 <(names) <(names -L '^(quick|thorough)$'))
[[ -n $(names) && -z $without ]] || { echo "tests without a tier: ${without:-all}"; exit 1; }
