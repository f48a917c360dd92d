#!/usr/bin/env bash
# asan.sh BUILD JOBS: runs the tests of a build with the address and undefined-behaviour sanitizers (make asan).
# Left out is what the sanitizers cannot see or would disturb:
#   cuda: kernels on fibers whose stacks the sanitizer does not know, and what asks for a GPU;
#   app_faults, app_checkpoints_*, app_remains, app_doctor, paper_programs: libraries loaded before the sanitizer, limits of memory, processes stopped and killed by the second;
#   resident memory (app_import_memory_*, app_run_memory, app_sample_orders, app_weights_memory, runtime_checkpoint_memory, runtime_memory): the sanitizer keeps what is freed;
#   app_learning, app_instruction_sets: they train whole models, which takes a quarter of an hour each;
#   kernels_functions: signs of NaN follow from the order in which code is written, which less optimised code changes;
#   runtime_replay_size, app_hostile_*, app_export, app_search_scale: limits of seconds and of memory;
#   app_balanced, app_energy_runs, app_replayable_trace, runtime_emulated: they hold runs against their seconds;
#   app_slurm, app_torch, bench, docs, gpu_check, check_layers, check_style: they try other programs, or no program of ours.
set -euo pipefail
build=$1; jobs=$2
left_out='cuda|^app_(balanced|faults|export|checkpoints_|remains|doctor|energy_runs|hostile_|import_memory|instruction_sets|learning|replayable_trace|run_memory|sample_orders|search_scale|slurm|torch|weights_memory)|^runtime_(checkpoint_memory|emulated|memory|replay_size)|^paper_programs|^bench|^docs_|^gpu_check|^check_(layers|style)|^kernels_functions'
with_mpi='_mpi_|^app_|^runtime_'
export UBSAN_OPTIONS=print_stacktrace=1
export MINDPIPE_STEPS=2  # of each layout: more of them read and write no other memory
# Two tests load a small library of theirs before all others, which the sanitizer has to allow.
# Open MPI leaks in plugins that it has unloaded by then, where no suppression finds their names: leaks are looked for without it.
status=0
ASAN_OPTIONS=detect_leaks=1 ctest --test-dir "$build" --output-on-failure -j "$jobs" -E "$left_out|$with_mpi" || status=$?
ASAN_OPTIONS=detect_leaks=0:verify_asan_link_order=0 ctest --test-dir "$build" --output-on-failure -j "$jobs" -R "$with_mpi" -E "$left_out" || status=$?
exit $status
