#!/usr/bin/env python3
"""weights.py BENCH: what writing and reading the weights of GPT-2 124M takes on one rank and on four, each in a process
of its own, five times in turn; with the medians.

    weights.py build/scripts/bench/weights_bench [--repeats 5] [--folder runs/bench] [--part BYTES] [--layers 12]

Exits 1 where four ranks take more than 1.2 times as long to write as one, or where the memory of a rank grows by more
than 8 MiB while it writes or reads.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys

MOST_TIME, MOST_GROWTH = 1.2, 8
GRIDS = ("1,1,1", "4,1,1", "2,2,1", "1,1,4")  # tensor, data, pipeline


def measured(options, grid):
    ranks = 1
    for degree in grid.split(","):
        ranks *= int(degree)
    command = [
        "mpirun", "--oversubscribe", "--bind-to", "none", "-np", str(ranks), options.bench, "--folder", options.folder, "--grid",
        grid, "--part", str(options.part), "--layers", str(options.layers)
    ]
    environment = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, env=environment)
    return json.loads(done.stdout)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("bench")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--folder", default="runs/bench")
    parser.add_argument("--part", type=int, default=5_000_000_000)
    parser.add_argument("--layers", type=int, default=12)
    options = parser.parse_args()
    os.makedirs(options.folder, exist_ok=True)
    rounds = []
    for turn in range(options.repeats + 1):
        found = {grid: measured(options, grid) for grid in GRIDS}
        print("warm-up" if turn == 0 else "round %d" % turn,
              "  ".join("%s: %.2f s written, %.2f s read" % (grid, one["write_seconds"], one["read_seconds"])
                        for grid, one in found.items()), flush=True)
        if turn > 0:
            rounds.append(found)
    good = True
    for grid in GRIDS:
        def of(key, grid=grid):
            return [found[grid][key] for found in rounds]

        write, alone = statistics.median(of("write_seconds")), statistics.median(
            [found[GRIDS[0]]["write_seconds"] for found in rounds])
        growth = max(of("write_growth_mib") + of("read_growth_mib"))
        is_good = write <= MOST_TIME * alone and growth <= MOST_GROWTH
        good = good and is_good
        print("tensor, data, pipeline %s: written in %.2f s (%.2f of one rank's time, at most %.1f), read in %.2f s; memory grows "
              "by %.1f MiB at most (at most %d): %s" %
              (grid, write, write / alone, MOST_TIME, statistics.median(of("read_seconds")), growth, MOST_GROWTH,
               "kept" if is_good else "missed"))
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
