#!/usr/bin/env python3
"""Supernets on this machine: against a GPT of the same shape, on two ranks against one, and what orders,
samplers and windows do to speed, memory and learning.

    supernet.py [--parts shape,ranks,orders,samplers,windows,jitter] [--repeats 3] [--seeds 3]

The figures of the first two parts mean something on a machine that runs nothing else."""
import argparse
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile

from running import ROOT, run_process

PARTS = ("shape", "ranks", "orders", "samplers", "windows", "jitter")
LAYERS, WIDTH, SEQUENCE = 6, 512, 256
TINY = os.path.join(ROOT, "configs", "supernet-tiny.yaml")
# A block's one candidate each: attention, MLP, and so on, as in a GPT of LAYERS layers.
ONE_EACH = "{name: one-each, decoder: {blocks: [%s]}}" % ", ".join(["[attention-8], [mlp-4]"] * LAYERS)
SHAPE = {
    "model.width": WIDTH, "model.context": SEQUENCE, "model.vocabulary": 260, "data.train": "data/alice.txt",
    "train.batch": 16, "train.micro_batch": 4, "optimizer.rate.peak": 1e-4, "optimizer.rate.warmup": 0
}


def run(options, settings, config, ranks=1, verb="train"):
    """Lines of metrics, what it printed, and MiB at the peak."""
    folder = tempfile.mkdtemp(prefix="bench-", dir=options.runs)
    try:
        all_settings = {
            "run.dir": folder, "run.resume": "never", "trace.steps": 0, "train.evaluate_every": 0,
            "checkpoint.every": 0, **settings
        }
        command = [options.binary, verb, "--config", config, *("%s=%s" % item for item in all_settings.items())]
        environment = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1",
                           OMPI_MCA_btl_vader_single_copy_mechanism="none")
        if ranks > 1:
            command = ["mpirun", "--oversubscribe", "--bind-to", "none", "-np", str(ranks), *command]
        _, lines, peak = run_process(command, environment)
        with open(os.path.join(folder, "metrics.jsonl")) as file:
            return [json.loads(line) for line in file], "".join(lines), peak
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def rate(lines, warm_up=4):
    """Steps, or subnets, a second: subnets end in bursts, so their seconds are added up."""
    seconds = [line["seconds"] for line in lines[warm_up:]]
    return len(seconds) / sum(seconds)


def configuration(options, text):
    path = os.path.join(options.runs, "bench.yaml")
    with open(path, "w") as file:
        file.write(text)
    return path


def shape(options):
    """A space with one candidate a block beside the GPT of that shape, one rank."""
    config = configuration(options, "run: {dir: d}\ndata: {train: [d]}\n")
    kinds = {
        "gpt": {"model.kind": "gpt", "model.layers": LAYERS, "model.heads": 8, "train.steps": 24},
        "supernet": {"model.kind": "supernet", "model.space": ONE_EACH, "train.steps": 24}
    }
    print("\none candidate a block (attention-8, mlp-4), width %d, %d layers, against gpt of that shape, one rank" %
          (WIDTH, LAYERS))
    for precision in ("f32", "bf16"):
        found = {kind: [] for kind in kinds}
        for repeat in range(options.repeats):
            for kind in list(kinds)[:: 1 if repeat % 2 == 0 else -1]:
                lines, _, peak = run(options, {**SHAPE, **kinds[kind], "train.precision": precision}, config)
                found[kind].append((rate(lines), peak))
        speeds = [ours[0] / theirs[0] for ours, theirs in zip(found["supernet"], found["gpt"])]
        sizes = [ours[1] / theirs[1] for ours, theirs in zip(found["supernet"], found["gpt"])]
        print("%-5s tokens/s %.3f x (%s; must 0.95), peak memory %.3f x (must 1.05)" %
              (precision, statistics.median(speeds), ", ".join("%.3f" % speed for speed in speeds),
               statistics.median(sizes)))


def ranks(options):
    """The reduced nlp.c3 on two ranks of one thread against one rank of two."""
    settings = {
        "model.width": 256, "supernet.sampler": "permutation", "train.batch": 64, "train.micro_batch": 16,
        "train.steps": 96, "reproducible.tensor": 1, "reproducible.data": 1
    }
    print("\nnlp-small, width 256, permutation, 4 micro-batches: two ranks of one thread against one of two")
    for precision in ("f32", "bf16"):
        ratios = []
        for repeat in range(options.repeats):
            found = {}
            for count in (1, 2) if repeat % 2 == 0 else (2, 1):
                layout = {"grid.pipeline": count, "device.threads": 2 // count, "train.precision": precision}
                found[count] = rate(run(options, {**settings, **layout}, TINY, count)[0])
            ratios.append(found[2] / found[1])
        print("%-5s %.3f x (%s; must 0.85, aim 0.95)" %
              (precision, statistics.median(ratios), ", ".join("%.3f" % ratio for ratio in ratios)))


def on_paper(options, settings, stages=8):
    """Speed-up over one stage, and activations held by all stages together, as `plan` says."""
    command = [
        options.binary, "plan", "--simulate", "--ranks", str(stages), "--config", TINY,
        "grid.pipeline=%d" % stages, "train.evaluate_every=0", *("%s=%s" % item for item in settings.items())
    ]
    text = subprocess.run(command, check=True, capture_output=True, text=True, cwd=ROOT).stdout
    faster = float(re.search(r"([0-9.]+) times as fast as one stage", text).group(1))
    head = next(line for line in text.splitlines() if line.startswith("stage"))
    end = head.index("activations") + len("activations")
    rows = [line[end - 13:end].strip() for line in text.splitlines() if re.match(r"\d+ +\d+-\d+ ", line)]
    units = {"bytes": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30}
    held = sum(float(row.split()[0]) * units[row.split()[1]] for row in rows)
    return faster, held / 2**20


def learned(options, settings, count=1, subnets=300):
    """The mean loss of the last 50 subnets, one figure a seed."""
    losses = []
    for seed in range(1, options.seeds + 1):
        lines, _, _ = run(options, {"seed": seed, "train.steps": subnets, "supernet.window": 15, **settings}, TINY,
                          count)
        losses.append(statistics.mean(line["loss"] for line in lines[-50:]))
    return losses


def row(name, options, settings, count=1):
    faster, held = on_paper(options, settings)
    losses = learned(options, settings, count)
    print("%-22s %8.2f x %12.1f MiB   %.3f (%s)" %
          (name, faster, held, statistics.mean(losses), ", ".join("%.3f" % loss for loss in losses)))


HEAD = "%-22s %10s %16s   %s" % ("", "8 stages", "activations", "loss after 300 subnets")


def orders(options):
    print("\norders, 4 stages of nlp-small (speed-up and memory: 8 stages on paper)\n" + HEAD)
    for order in ("causal", "bulk", "free"):
        row(order, options, {"schedule.kind": order}, 4)


def samplers(options):
    print("\nsamplers, one rank\n" + HEAD)
    for sampler in ("uniform", "permutation", "spaced"):
        for parts in (1, 4):
            row("%s, %d" % (sampler, parts), options,
                {"supernet.sampler": sampler, "reproducible.data": 1, "train.micro_batch": 32 // parts})


def windows(options):
    print("\nwindows, one rank\n" + HEAD)
    for window in (1, 8, 16, 64):
        row("window %d" % window, options, {"supernet.window": window})


def jitter(options):
    """Lists that a table has written, on times that are not the table's: simulated, 8 stages."""
    print("\nlists against the rule that decides as it goes, on times that are not their table's, simulated")
    program = os.path.join(os.path.dirname(options.binary), "tests", "test_program")
    _, lines, _ = run_process([program, "--gtest_brief=1", "--gtest_filter=ListsOffTheTable.*"], dict(os.environ))
    print("".join(line for line in lines if line.startswith("8 stages")), end="")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--parts", default=",".join(PARTS))
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--binary", default=os.path.join(ROOT, "build", "mindpipe-train"))
    parser.add_argument("--runs", default=os.path.join(ROOT, "runs", "bench"))
    options = parser.parse_args()
    os.makedirs(options.runs, exist_ok=True)
    for part in options.parts.split(","):
        if part not in PARTS:
            sys.exit("supernet.py: no part %s (%s)" % (part, ", ".join(PARTS)))
        globals()[part](options)


if __name__ == "__main__":
    main()
