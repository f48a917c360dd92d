#!/usr/bin/env bash
# jobs.sh: how many files to compile at a time: one for each processor that this shell may use, as far as memory allows 1.5 GB each.
processors=$(nproc 2>/dev/null || getconf _NPROCESSORS_ONLN)
memory=$(sed -nE 's/^MemTotal: *([0-9]+) kB/\1/p' /proc/meminfo 2>/dev/null)   # in KiB
limit=$(cat /sys/fs/cgroup/memory.max 2>/dev/null)                             # a job's or a container's, in bytes; max: none
[[ $limit =~ ^[0-9]+$ ]] && ((limit / 1024 < ${memory:-limit})) && memory=$((limit / 1024))
fit=$((${memory:-0} / 1500000))
jobs=$((fit > 0 && fit < processors ? fit : processors))
echo $((memory > 0 && fit == 0 ? 1 : jobs))
