#!/usr/bin/env python3
"""Looks whether MindPipe is right and fast on this machine's GPU, within eight minutes, from a bundle that
needs no installation.

    gpu-check.sh [--device cuda|cpu] [--output FOLDER] [--minutes 8] [--only PART,...] [--python PYTHON]
    [--list]

Every part has seconds of its own and a log; one that fails or takes too long does not stop the others. The
verdict stands in the last lines; everything is in FOLDER/gpu-check.json. `--device cpu` rehearses all parts
on the processor at tiny sizes: it says that the script runs, and nothing of any GPU. PyTorch's interpreter is
the one that runs this script, or --python. Exit codes: 0 all good, 1 something is wrong, 2 usage, 69 there is
no GPU (the parts are listed and not begun).
"""
import argparse
import json
import os
import shutil
import subprocess
import sys
import time

import libraries
import parts
import tables
import verdict
from reading import FAILED, MISSING


REHEARSAL_PATIENCE = 4  # a processor that computes for others too is no sign of anything


class Check:
    """What all parts share: where things lie, in which environment programs run, and what was measured so
    far."""

    def __init__(self, options, bundle):
        self.bundle, self.device, self.python = bundle, options.device, options.python
        self.output = os.path.abspath(options.output)
        self.users_environment = dict(os.environ)
        with open(os.path.join(bundle, "bundle.json")) as file:
            self.built = json.load(file)
        found, self.missing = libraries.find(self.built["libraries"], libraries.candidates(self.python),
                                             libraries.known_to_the_loader())
        self.environment = libraries.environment_of(bundle, found, os.environ)
        self.libraries, self.kernels, self.runs = found, None, {}

    def path(self, name):
        return os.path.join(self.output, name)

    def log(self, name):
        return self.path(name + ".log")

    def graphics(self):
        """The line of `mindpipe-train doctor` that names GPUs, or says why there are none."""
        answer = subprocess.run([os.path.join(self.bundle, "bin", "mindpipe-train"), "doctor"],
                                env=self.environment, capture_output=True, text=True, timeout=60)
        line = next((line for line in answer.stdout.splitlines() if line.startswith("graphics")), "")
        return line[len("graphics"):].strip() or "mindpipe-train doctor failed: " + (
            answer.stderr.strip() or "exit code %d" % answer.returncode)


def goals_of(runs):
    """Figures under the keys of the table of one GPU."""
    figures = {name: runs[name]["tokens_per_second"] for name in ("gpt2-124m", "gpt2-1.5b") if name in runs}
    for name in list(figures):
        if name + "-torch" in runs:
            figures[name + "-of-torch"] = figures[name] / runs[name + "-torch"]["tokens_per_second"]
    if runs.get("llama-8b", {}).get("of_products"):
        figures["llama-8b-share"] = runs["llama-8b"]["of_products"]
    return figures


def run_parts(check, chosen, whole):
    start, results = time.monotonic(), []
    for part in chosen:
        budget = part.seconds * (1 if check.device == "cuda" else REHEARSAL_PATIENCE)
        seconds = verdict.allowance(budget, time.monotonic() - start, whole)
        begun = time.monotonic()
        if seconds == 0:
            outcome, why, figures = MISSING, "no time was left for it", {}
        else:
            print("... %s: %s (at most %.0f s)" % (part.name, part.settles, seconds), flush=True)
            try:
                outcome, why, figures = part.work(check, seconds)
            except (OSError, ValueError, KeyError) as error:  # one part's trouble is not the others'
                outcome, why, figures = FAILED, "%s: %s" % (type(error).__name__, error), {}
        results.append({
            "name": part.name, "settles": part.settles, "outcome": outcome, "why": why,
            "seconds": time.monotonic() - begun, "figures": figures
        })
    return results, time.monotonic() - start


def options_of(words):
    parser = argparse.ArgumentParser(prog="gpu-check.sh", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", choices=["cuda", "cpu"], default="cuda")
    parser.add_argument("--output", default="gpu-check-results")
    parser.add_argument("--minutes", type=float, default=8)
    parser.add_argument("--only", default="", metavar="PART,...")
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--list", action="store_true", help="the parts, and nothing else")
    options = parser.parse_args(words)
    options.chosen = [
        part for part in parts.PARTS if not options.only or part.name in options.only.split(",")
    ]
    unknown = set(filter(None, options.only.split(","))) - {part.name for part in parts.PARTS}
    if unknown:
        parser.error("--only names no part '%s'; --list shows them" % "', '".join(sorted(unknown)))
    return options


def list_parts(chosen):
    for part in chosen:
        print("  %-24s %4.0f s  %s" % (part.name, part.seconds, part.settles))


def write(check, report):
    with open(check.path("gpu-check.json"), "w") as file:
        json.dump(report, file, indent=1)


def main(words):
    options = options_of(words)
    if options.list:
        list_parts(options.chosen)
        return 0
    check = Check(options, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    os.makedirs(check.output, exist_ok=True)
    graphics = check.graphics()
    report = {
        "date": time.strftime("%Y-%m-%dT%H:%M:%SZ",
                              time.gmtime()), "device": options.device, "graphics": graphics,
        "bundle": check.built, "libraries": check.libraries, "libraries_missing": check.missing
    }
    print("MindPipe %s; %s" % (check.built["commit"], graphics))
    for name in check.missing:
        print(
            "%s is nowhere: not in LD_LIBRARY_PATH, not known to the loader, "
            "not in /usr/local/cuda*, not beside %s"
            % (name, check.python))
    if options.device == "cuda" and ("no GPU" in graphics or " on a driver for " not in graphics):
        print("gpu-check: no GPU that this process may use (%s). On one this would have run:" % graphics)
        list_parts(options.chosen)
        write(check, dict(report, verdict="no GPU", code=verdict.NO_GPU, parts=[]))
        return verdict.NO_GPU
    results, seconds = run_parts(check, options.chosen, 60 * options.minutes)
    figures = goals_of(check.runs)
    missed = [
        goal.what.strip() for goal in tables.GOALS if options.device == "cuda" and goal.is_missed(figures)
    ]
    code, lines = verdict.verdict(results, options.device, missed, seconds)
    if check.kernels:
        print("\n" + "\n".join(tables.kernel_table(check.kernels)))
    if check.runs:
        print("\n" +
              "\n".join(tables.training_table(check.runs, "" if options.device == "cuda" else "tiny, for ")))
    if options.device == "cuda":
        print("\n" + "\n".join(tables.goal_table(figures)))
    print("\n" + "\n".join(lines))
    write(
        check,
        dict(report, verdict=lines[-1], code=code, seconds=seconds, goals=figures, below=missed,
             parts=results, training=check.runs,
             heaviest=tables.kernel_rows(check.kernels) if check.kernels else []))
    for name in training_folders(check):
        shutil.rmtree(name, ignore_errors=True)
    return code


def training_folders(check):
    return [
        os.path.join(check.output, name) for name in os.listdir(check.output)
        if name.startswith("train-") and not name.endswith(".log")
    ]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
