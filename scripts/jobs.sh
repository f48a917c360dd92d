#!/usr/bin/env bash
# jobs.sh [ROOT]: how many files to compile at a time: one for each processor that this shell may use, as far as memory allows 1.5 GB each.
# ROOT is the folder where proc and sys stand; a test makes one.
root=${1:-}
# nproc would take OMP_NUM_THREADS, which clusters set to 1 for their programs, for the processors.
processors=$(env -u OMP_NUM_THREADS -u OMP_THREAD_LIMIT nproc 2>/dev/null || getconf _NPROCESSORS_ONLN)
memory=$(sed -nE 's/^MemTotal: *([0-9]+) kB/\1/p' "$root/proc/meminfo" 2>/dev/null)   # in KiB

# Limits of this shell's control groups in bytes: a job's or a container's, and of all groups around it. Some are words.
limits() {
  local kinds path groups file
  while IFS=: read -r _ kinds path; do
    case $kinds in
      '') groups=$root/sys/fs/cgroup file=memory.max ;;
      memory) groups=$root/sys/fs/cgroup/memory file=memory.limit_in_bytes ;;
      *) continue ;;
    esac
    while cat "$groups$path/$file" 2>/dev/null; [[ $path ]]; do path=${path%/*}; done
  done <"$root/proc/self/cgroup"
}
for limit in $(limits 2>/dev/null); do
  [[ $limit =~ ^[0-9]+$ ]] && ((limit / 1024 < ${memory:-limit})) && memory=$((limit / 1024))
done
fit=$((${memory:-0} / 1500000))
jobs=$((fit > 0 && fit < processors ? fit : processors))
echo $((memory > 0 && fit == 0 ? 1 : jobs))
