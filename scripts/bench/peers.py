"""PyTorch beside MindPipe as a user would run it: eagerly and through torch.compile, each in a process of its own."""
import json
import os
import shutil
import statistics
import subprocess
import sys
import time

from running import ROOT, Ended, run_process

EAGER, COMPILED = "torch", "torch compiled"

# A function and its gradient through torch.compile: what it needs beside torch is missed here or never.
TRIAL = """
import torch
x = torch.ones(8, requires_grad=True)
torch.compile(lambda x: (x.sin() * x).sum())(x).backward()
"""


def interpreter():
    """Of a Python that imports torch; empty if there is none."""
    for python in (os.environ.get("MINDPIPE_PEER_PYTHON"), os.path.join(ROOT, ".venv-peers", "bin",
                                                                        "python"), "/usr/bin/python3"):
        if python and shutil.which(python) and subprocess.run([python, "-c", "import torch"],
                                                              capture_output=True).returncode == 0:
            return python
    print(
        "no interpreter here imports torch: MindPipe runs alone "
        "(make bench-peers installs it, MINDPIPE_PEER_PYTHON names another)"
    )
    return ""


def environment(options):
    """What is compiled stays below the runs' directory, where the next run of the same kind finds it."""
    return dict(os.environ, TORCHINDUCTOR_CACHE_DIR=os.path.join(options.runs, "torch-compiled"),
                TRITON_CACHE_DIR=os.path.join(options.runs, "torch-compiled", "triton"))


def reason(text):
    """The line of a failed program's output that names the error, else its last one."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return next((line for line in reversed(lines) if "Error: " in line), lines[-1] if lines else "it said nothing")


def why_not_compiled(options):
    """Why torch.compile does not work here; empty if it does."""
    if options.eager:
        return "--eager leaves it out"
    trial = subprocess.run([options.python, "-c", TRIAL], capture_output=True, text=True,
                           env=environment(options))
    return "" if trial.returncode == 0 else reason(trial.stderr)


def choose(options):
    """Sets options.python, options.peers and options.not_compiled, and says what is missing."""
    options.python, options.peers, options.not_compiled = interpreter(), [], ""
    if options.python:
        options.not_compiled = why_not_compiled(options)
        options.peers = [EAGER] if options.not_compiled else [EAGER, COMPILED]
        if options.not_compiled:
            print("PyTorch runs eagerly alone, torch.compile does not: " + options.not_compiled)


def run_torch(options, words, precision, compiled, warm_up):
    """A run of a script of PyTorch's; `words` are its name and its own options."""
    first = []

    def on_line(line):
        if not first and "first_step_seconds" in line:
            first.append(time.time())

    command = [
        options.python, os.path.join(ROOT, "scripts", "bench", words[0]), *words[1:], "--precision", precision,
        "--steps",
        str(warm_up + options.steps), "--warm-up",
        str(warm_up), "--threads",
        str(options.threads), "--peak"
    ]
    start, lines, _ = run_process(command + ["--compile"] * compiled, environment(options), on_line)
    result = json.loads(lines[-1])
    result["to_first_step_seconds"] = first[0] - start - result["first_step_seconds"]
    return result


def in_turn(options, title, run_ours, run_theirs):
    """Runs of ours and of the peers, by name, round by round, and why PyTorch was not compiled, if so. Who
    begins changes, so that none always runs on a warm machine. A compiled peer that fails is left out."""
    runs, not_compiled = {who: [] for who in ["mindpipe", *options.peers]}, options.not_compiled
    for repeat in range(options.repeats):
        for who in list(runs)[:: 1 if repeat % 2 == 0 else -1]:
            print("%s, %s, run %d of %d" % (title, who, repeat + 1, options.repeats), file=sys.stderr,
                  flush=True)
            try:
                runs[who].append(run_ours() if who == "mindpipe" else run_theirs(who == COMPILED))
            except Ended as failure:
                if who != COMPILED:
                    raise
                del runs[who]
                not_compiled = reason(str(failure))
                print("%s: PyTorch goes by its eager runs, the compiled one failed: %s" % (title, not_compiled))
    return runs, not_compiled


def against(runs, rate, not_compiled):
    """Our ratios to each peer, medians over the rounds, and the name of the better one: the one with the
    higher median of `rate`."""
    found = {
        who: {
            key: statistics.median(ours[of] / theirs[of] for ours, theirs in zip(runs["mindpipe"], runs[who]))
            for key, of in (("speed_ratio", rate), ("memory_ratio", "peak_mib"))
        }
        for who in (EAGER, COMPILED) if runs.get(who)
    }
    if found:
        found["better"] = max(found, key=lambda who: statistics.median(run[rate] for run in runs[who]))
    if not_compiled:
        found["not_compiled"] = not_compiled
    return found


def print_ratios(found, what):
    for who in (EAGER, COMPILED):
        if who in found:
            print("mindpipe / %-14s %s/s %.2f x, peak memory %.2f x%s" %
                  (who, what, found[who]["speed_ratio"], found[who]["memory_ratio"],
                   ", the better peer" if who == found["better"] and COMPILED in found else ""))
