#!/usr/bin/env python3
"""MindPipe on this machine's processors: against PyTorch side by side, and against what the design demands.

    bench.py [--parts products,training,models,layouts,sums,runtime,checkpoints] [--precisions f32,bf16] [--batch 2]
    [--micro-batch 1] [--steps 2] [--repeats 3]
             [--threads 2] [--compile] [--judge] [--output runs/bench/bench.json] [--set key=value ...]

Runs `mindpipe-train` and torch_gpt.py in turn, `--repeats` times, each run in a process of its own; `--steps`
are counted, behind two that warm up: PyTorch's second step is still 11 to 14 % slower than those that follow
(ours is not, and one is enough for our own layouts). Peak memory is that of the steps (with the saving of
weights at the end: whole_peak_mib). Figures are medians of the runs' medians; ratios are medians over the
pairs of neighbouring runs. PyTorch's interpreter: $MINDPIPE_PEER_PYTHON, else .venv-peers/bin/python (`make
bench-peers`), else /usr/bin/python3.

products: our products and the raw rate of the instruction they are made of; with training, each run of ours
stands between two measurements of large products on all threads, of which its whole step is a share.
training: GPT-2 124M in each precision. models: BERT-base (512 tokens, 76 of them to be found), a transformer
of base size (64 to 64 tokens), ViT-base/16 and a tiny Evolved Transformer (64 to 64 bytes), without dropout.
sums: the fixed tree over two ranks beside MPI_Allreduce. checkpoints:
GPT-2 124M in f32 with Adam (1.5 GB) saved and loaded on one and on two ranks, in turn with dd of as many
bytes (with fsync; from the device); and what saves cost the training in the background, as a share of what
the same saves cost when it waits for them. runtime: the share of its rate that a rank on one processor keeps
while it waits for a message in the background; the trace's recording. layouts: two ranks with one thread each
against one rank with two threads (data, tensor, pipeline), and one rank whose arithmetic is cut as if it were
four (shards); few layers of GPT-2's width, see layouts.py. `--compile` adds torch.compile as another column.
At the end every must of the design stands with its verdict, here and in the JSON. Exit code 0 when the
figures were taken, whatever they are; with --judge 1 if a must is missed.
"""
import argparse
import functools
import json
import os
import platform
import shutil
import statistics
import subprocess
import sys
import time

sys.dont_write_bytecode = True
import verdicts
from layouts import layouts
from models import models
from running import ROOT, SEQUENCE, fail, rate_of_large_products, run_mindpipe, run_process, run_program

LAYERS, WIDTH, PARAMETERS = 12, 768, 124_439_808  # with 50,257 rows in the table, which is counted once
PARTS = ("products", "training", "models", "layouts", "sums", "runtime", "checkpoints")
PRECISIONS = ("f32", "bf16")
WARM_UP = 2  # steps


def peer_python():
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


def run_torch(options, words, precision, compiled=False):
    """A run of a script of PyTorch's; `words` are its name and its own options."""
    first = []

    def on_line(line):
        if not first and "first_step_seconds" in line:
            first.append(time.time())

    command = [
        options.python, os.path.join(ROOT, "scripts", "bench", words[0]), *words[1:], "--precision", precision,
        "--steps",
        str(WARM_UP + options.steps), "--warm-up",
        str(WARM_UP), "--threads",
        str(options.threads), "--peak"
    ]
    start, lines, peak = run_process(command + ["--compile"] * compiled, dict(os.environ), on_line)
    result = json.loads(lines[-1])
    result["to_first_step_seconds"] = first[0] - start - result["first_step_seconds"]
    return result


def median_of(runs, key):
    values = [run[key] for run in runs if run.get(key) is not None]
    return statistics.median(values) if values else float("nan")


def ratio(ours, theirs, key):
    return statistics.median(a[key] / b[key] for a, b in zip(ours, theirs))


def share_of_peak(tokens_per_second, gflops, causal):
    work = 6 * PARAMETERS + (6 if causal else 12) * LAYERS * WIDTH * SEQUENCE
    return tokens_per_second * work / (gflops * 1e9)


def compare(options, precision, with_products):
    """`with_products`: each of our runs stands between two measurements of our large products, since the
    machine's own speed changes."""
    runs = {"mindpipe": []}
    if options.python:
        runs.update({"torch": [], "torch compiled": []} if options.compile else {"torch": []})
    for repeat in range(options.repeats):
        # turn about, so that neither always runs on a warm machine
        for who in list(runs)[:: 1 if repeat % 2 == 0 else -1]:
            print("%s, %s, run %d of %d" % (precision, who, repeat + 1, options.repeats), file=sys.stderr,
                  flush=True)
            if who == "mindpipe":
                before = rate_of_large_products(options, precision) if with_products else None
                runs[who].append(
                    run_mindpipe(options, precision, options.batch, options.micro_batch, options.threads,
                                 warm_up=WARM_UP))
                if with_products:
                    runs[who][-1]["own_products_gflops"] = (before +
                                                            rate_of_large_products(options, precision)) / 2
            else:
                runs[who].append(
                    run_torch(options, [
                        "torch_gpt.py", "--batch",
                        str(options.batch), "--micro-batch",
                        str(options.micro_batch), "--sequence",
                        str(SEQUENCE)
                    ], precision, who == "torch compiled"))
    return runs


def print_comparison(precision, runs):
    ours = runs["mindpipe"][0]
    peak = max((run["product_gflops"] for run in runs.get("torch", [])),
               default=median_of(runs["mindpipe"], "own_products_gflops"))
    print(
        "\nGPT-2 124M, %s, sequence %d, batch %d, micro-batch %d, %d threads; "
        "%s %.0f GFLOP/s (the shares are of them)"
        % (precision, SEQUENCE, ours["batch"], ours["micro_batch"], ours["threads"],
           "torch %s, its large products" %
           runs["torch"][0]["torch"] if "torch" in runs else "our own large products", peak))
    print("%-16s %10s %10s %10s %12s %14s %16s" %
          ("", "tokens/s", "step s", "peak MiB", "start s", "causal share", "full share"))
    for who, many in runs.items():
        speed = median_of(many, "tokens_per_second")
        print("%-16s %10.1f %10.2f %10.0f %12.2f %12.0f %% %14.0f %%" %
              (who, speed, statistics.median(s for run in many for s in run["step_seconds"]),
               median_of(many, "peak_mib"), median_of(many, "to_first_step_seconds"),
               100 * share_of_peak(speed, peak, True), 100 * share_of_peak(speed, peak, False)))
    summary = {}
    for who in list(runs)[1:]:
        speed, memory = ratio(runs["mindpipe"], runs[who],
                              "tokens_per_second"), ratio(runs["mindpipe"], runs[who], "peak_mib")
        print("mindpipe / %-14s tokens/s %.2f x, peak memory %.2f x" % (who, speed, memory))
        summary[who] = {"speed_ratio": speed, "memory_ratio": memory}
    shares = [
        share_of_peak(run["tokens_per_second"], run["own_products_gflops"], True) for run in runs["mindpipe"]
        if "own_products_gflops" in run
    ]
    if shares:
        share = statistics.median(shares)
        print("whole step: %.0f %% of the rate of our own large products beside it, %.0f GFLOP/s"
              % (100 * share, median_of(runs["mindpipe"], "own_products_gflops")))
        summary["share_of_own_products"] = share
    return dict(summary, product_gflops=peak if "torch" in runs else None,
                to_first_step_seconds=median_of(runs["mindpipe"], "to_first_step_seconds"))


def products(options):
    """Every product of the model; says which share of the instruction's own rate the large ones reach."""
    shapes = run_program(options, ["products_bench"])
    large = [shape for shape in shapes if shape["n"] >= 1024 and shape["k"] * shape["m"] >= 768 * 2304]
    shares = {"f32": statistics.median(shape["ours"] / shape["real_peak"] for shape in large),
              "bf16": statistics.median(shape["ours_bf16"] / shape["real_peak_bf16"] for shape in large)}
    print("large products, medians: f32 %.0f %% of the instruction's rate, bf16 %.0f %%" %
          (100 * shares["f32"], 100 * shares["bf16"]))
    return {"shapes": shapes, "large_shares": shares}


def runtime(options):
    """What the runtime takes from a rank that computes."""
    lines = run_program(options,
                        ["mpirun", "--oversubscribe", "--bind-to", "none", "-np", "2", "runtime_bench"])
    return {what: [line for line in lines if line["what"] == what] for what in ("recording", "waiting")}


def checkpoints(options):
    """What saving and loading takes, by the number of ranks."""
    found = {}
    for ranks in (1, 2):
        command = ["mpirun", "--oversubscribe", "--bind-to", "none", "-np", str(ranks), "checkpoints_bench"]
        found[ranks] = run_program(options, command,
                                   ["--folder", options.runs, "--repeats",
                                    str(options.repeats)])[0]
    return found


def cpuinfo(key):
    with open("/proc/cpuinfo") as file:
        return next((line.split(":", 1)[1].strip() for line in file if line.startswith(key)), "")


def figures(report):
    """What verdicts.judge is told, by the names of its musts: all that was measured."""
    found = {}
    for precision, comparison in report["comparisons"].items():
        for must, figure in (("speed", "speed_ratio"), ("memory", "memory_ratio")):
            found["%s %s" % (must, precision)] = comparison["torch"][
                figure] if "torch" in comparison else "not measurable here: no PyTorch"
        found["step " + precision] = comparison.get("share_of_own_products")
    for precision, of_kinds in report.get("models", {}).items():
        for kind, comparison in of_kinds.items():
            for must, figure in (("speed", "speed_ratio"), ("memory", "memory_ratio")):
                found["%s %s %s" % (kind, must, precision)] = comparison["torch"][
                    figure] if "torch" in comparison else "not measurable here: no PyTorch"
    starts = [comparison["to_first_step_seconds"] for comparison in report["comparisons"].values()]
    if starts:
        found["start"] = max(starts)
    if "products" in report:
        found["tiles"] = report["products"]["large_shares"]["bf16"] if report[
            "tiles"] else "not measurable here: no AMX"
    for precision, results in report["layouts"].items():
        found.update(
            {"%s %s" % (name, precision): results[name]["ratio"]
             for name in ("data", "tensor", "pipeline")})
    if "runtime" in report:
        found["waiting"] = min(line["share"] for line in report["runtime"]["waiting"])
        found["recording"] = report["runtime"]["recording"][0]["share"]
    for ranks, line in report.get("checkpoints", {}).items():
        for name in ("save", "load", "background_cost", "stood_still"):
            found["%s %s" % (name, ranks)] = line[name]
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--precisions", default="f32,bf16")
    parser.add_argument("--parts", default=",".join(PARTS))
    parser.add_argument("--batch", type=int, default=2)
    parser.add_argument("--micro-batch", type=int, default=1, help="0: the batch")
    parser.add_argument("--steps", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--compile", action="store_true")
    parser.add_argument("--judge", action="store_true", help="exit code 1 if a must is missed")
    parser.add_argument("--binary", default=os.path.join(ROOT, "build", "mindpipe-train"))
    parser.add_argument("--config", default=os.path.join(ROOT, "configs", "gpt2-124m.yaml"))
    parser.add_argument("--runs", default=os.path.join(ROOT, "runs", "bench"),
                        help="where the runs' directories stand while they last")
    parser.add_argument("--output", default="")
    parser.add_argument("--set", action="append", default=[], metavar="key=value",
                        help="further settings of MindPipe")
    options = parser.parse_args()
    options.micro_batch = options.micro_batch or options.batch
    if options.steps < 1 or options.repeats < 1:
        fail("--steps and --repeats must be at least 1")
    for path in (options.binary, options.config):
        if not os.path.exists(path):
            fail("%s is not there; build it first (make), or give --binary and --config" % path)
    os.makedirs(options.runs, exist_ok=True)
    precisions, parts = options.precisions.split(","), options.parts.split(",")
    for given, known, what in ((precisions, PRECISIONS, "--precisions"), (parts, PARTS, "--parts")):
        for word in given:
            if word not in known:
                fail("%s has '%s' (expected %s, with commas)" % (what, word, " or ".join(known)))

    options.python = peer_python() if {"training", "models"} & set(parts) else ""
    report = {
        "processor": cpuinfo("model name") or platform.machine(), "threads": options.threads,
        "python": options.python, "tiles": "amx_bf16" in cpuinfo("flags").split(), "load": os.getloadavg(),
        "date": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()), "comparisons": {}, "models": {}, "layouts": {}
    }
    print("%s, %d threads, load before %.1f" % (report["processor"], options.threads, report["load"][0]))
    if "products" in parts:
        report["products"] = products(options)
    for precision in precisions:
        if "training" in parts:
            runs = compare(options, precision, "products" in parts)
            report["comparisons"][precision] = dict(print_comparison(precision, runs), runs=runs)
        if "models" in parts:
            report["models"][precision] = models(options, precision, functools.partial(run_torch, options),
                                                 WARM_UP)
    if "layouts" in parts:
        report["layouts"] = {precision: layouts(options, precision) for precision in precisions}
    if "sums" in parts:
        report["sums"] = run_program(
            options, ["mpirun", "--oversubscribe", "--bind-to", "none", "-np", "2", "sums_bench"])
    if "runtime" in parts:
        report["runtime"] = runtime(options)
    if "checkpoints" in parts:
        report["checkpoints"] = checkpoints(options)
    report["musts"] = verdicts.judge(figures(report))
    report["summary"] = verdicts.summary(report["musts"])
    print("\n" + "\n".join(verdicts.table(report["musts"])) + "\n" + report["summary"])
    output = options.output or os.path.join(options.runs, "bench.json")
    with open(output, "w") as file:
        json.dump(report, file, indent=1)
    print("written to %s" % output)
    sys.exit(1 if options.judge and verdicts.missed(report["musts"]) else 0)


if __name__ == "__main__":
    main()
