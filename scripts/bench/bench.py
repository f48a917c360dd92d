#!/usr/bin/env python3
"""MindPipe on this machine's processors: against PyTorch side by side, and against what the design demands.

    bench.py [--parts products,training,models,layouts,sums,runtime,checkpoints,orders,tokenizing,noise,folding] [--precisions f32,bf16]
    [--batch 4] [--micro-batch 4] [--steps 2] [--repeats 3]
             [--threads 2] [--eager] [--judge] [--output runs/bench/bench.json] [--set key=value ...]

Runs `mindpipe-train` and PyTorch in turn, `--repeats` times, each run in a process of its own; `--steps`
are counted, behind two that warm up: PyTorch's second step is still 11 to 14 % slower than those that follow
(ours is not, and one is enough for our own layouts). PyTorch runs twice, eagerly and through torch.compile,
whose compiling falls into the first step and is not counted; both are shown, and verdicts go by the better
one, which has the higher median rate. `--eager` leaves the compiled one out; where it cannot be (no C++
compiler, an old PyTorch) the bench says so and goes by the eager one. Peak memory is that of the steps: ours
since the start (with the saving of weights at the end: whole_peak_mib), PyTorch's since the warm-up, so that
no compiling is in it. GPT-2's memory is held against the compiled PyTorch, that of the other models against
the better one. Figures are medians of the runs' medians; ratios are medians over the rounds. PyTorch's
interpreter: $MINDPIPE_PEER_PYTHON, else .venv-peers/bin/python (`make bench-peers`), else /usr/bin/python3.

products: our products beside oneDNN's and the peak of the instruction that they are made of, as it is with
random operands from the first cache (the raw one is shown beside it); the must is about the form that is
farthest from it. One row by weights from memory stands beside a copy.
With training, each run of ours stands between two measurements of large products on all threads, of which its
whole step is a share.
training: GPT-2 124M in each precision, 4 sequences at once. models: BERT-base (512 tokens, 76 of them to be found), a transformer
of base size (64 to 64 tokens), ViT-base/16, a tiny Evolved Transformer (64 to 64 bytes) and WRN-16-4, without dropout.
sums: the fixed tree over two ranks beside MPI_Allreduce. checkpoints:
GPT-2 124M in f32 with Adam (1.5 GB) saved and loaded on one and on two ranks, in turn with dd of as many
bytes (with fsync; from the device); and what saves cost the training in the background, as a share of what
the same saves cost when it waits for them. runtime: the share of its rate that a rank on one processor keeps
while it waits for a message in the background; the trace's recording. layouts: two ranks with one thread each
against one rank with two threads (data, tensor, pipeline), and one rank whose arithmetic is cut as if it were
four (shards); few layers of GPT-2's width, see layouts.py. orders: a job of one step on four ranks over 50 million
documents, where it makes the order of their samples and where it finds the order's file. tokenizing: three
tokenizers on English and code beside Hugging Face's tokenizers on one thread, one letter and spaces, two threads;
the training of one; the memory of an import of 2 GB. noise: what the noise scale takes of a step of GPT-2 124M that
measures it, beside the steps before and behind it in the same run. folding: emulated steps whose sums over data
go in parts under passes, beside those with sums behind all passes and in one piece.
At the end every must of the design stands with its verdict, here and in the JSON, with the peer it is held
against and the reason for a bound that depends on the machine. Exit code 0 when the figures were taken,
whatever they are; with --judge 1 if a must is missed.
"""
import argparse
import json
import os
import sys
import time

sys.dont_write_bytecode = True
import gpt2
import large_products
import machine
import peers
import verdicts
from figures import figures
from folding import folding
from layouts import layouts
from models import models
from noise import noise
from orders import orders
from running import ROOT, Ended, fail, run_program
from tokenizing import tokenizing

PARTS = ("products", "training", "models", "layouts", "sums", "runtime", "checkpoints", "orders", "tokenizing", "noise", "folding")
PRECISIONS = ("f32", "bf16")
WARM_UP = 2  # steps
PACKED_WEIGHTS = False  # no engine of ours keeps weights packed between products


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


def options_of_command_line():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--precisions", default="f32,bf16")
    parser.add_argument("--parts", default=",".join(PARTS))
    parser.add_argument("--batch", type=int, default=4)
    parser.add_argument("--micro-batch", type=int, default=0, help="0: the batch")
    parser.add_argument("--steps", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--eager", action="store_true", help="without torch.compile")
    parser.add_argument("--judge", action="store_true", help="exit code 1 if a must is missed")
    parser.add_argument("--binary", default=os.path.join(ROOT, "build", "mindpipe-train"))
    parser.add_argument("--config", default=os.path.join(ROOT, "configs", "gpt2-124m.yaml"))
    parser.add_argument("--runs", default=os.path.join(ROOT, "runs", "bench"),
                        help="where the runs' directories stand while they last, and what PyTorch compiles")
    parser.add_argument("--output", default="")
    parser.add_argument("--set", action="append", default=[], metavar="key=value",
                        help="further settings of MindPipe")
    options = parser.parse_args()
    options.micro_batch = options.micro_batch or options.batch
    if options.steps < 1 or options.repeats < 1:
        fail("--steps and --repeats must be at least 1")
    if options.batch < 1 or options.batch % options.micro_batch:
        fail("--batch must be a multiple of --micro-batch")
    for path in (options.binary, options.config):
        if not os.path.exists(path):
            fail("%s is not there; build it first (make), or give --binary and --config" % path)
    options.precisions, options.parts = options.precisions.split(","), options.parts.split(",")
    for given, known, what in ((options.precisions, PRECISIONS, "--precisions"), (options.parts, PARTS,
                                                                                "--parts")):
        for word in given:
            if word not in known:
                fail("%s has '%s' (expected %s, with commas)" % (what, word, " or ".join(known)))
    options.runs = os.path.abspath(options.runs)
    os.makedirs(options.runs, exist_ok=True)
    options.instructions = machine.instructions(options.set)
    options.python, options.peers, options.not_compiled = "", [], ""
    return options


def measure(options):
    """All parts that were asked for, as they are written to the JSON."""
    parts = options.parts
    if {"training", "models"} & set(parts):
        peers.choose(options)
    report = {
        "processor": machine.processor(), "instructions": options.instructions,
        "packed_weights": PACKED_WEIGHTS, "threads": options.threads, "python": options.python,
        "peers": options.peers, "not_compiled": options.not_compiled, "load": os.getloadavg(),
        "date": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()), "comparisons": {}, "models": {}, "layouts": {}
    }
    print("%s, %s, %d threads, load before %.1f" %
          (report["processor"], options.instructions, options.threads, report["load"][0]))
    if "products" in parts:
        report["products"] = large_products.report(
            run_program(options, ["products_bench"], ["--instructions", options.instructions]))
    for precision in options.precisions:
        if "training" in parts:
            report["comparisons"][precision] = gpt2.report(
                precision, *gpt2.compare(options, precision, "products" in parts, WARM_UP))
        if "models" in parts:
            report["models"][precision] = models(options, precision, WARM_UP)
    if "layouts" in parts:
        report["layouts"] = {precision: layouts(options, precision) for precision in options.precisions}
    if "sums" in parts:
        report["sums"] = run_program(
            options, ["mpirun", "--oversubscribe", "--bind-to", "none", "-np", "2", "sums_bench"])
    if "runtime" in parts:
        report["runtime"] = runtime(options)
    if "checkpoints" in parts:
        report["checkpoints"] = checkpoints(options)
    if "noise" in parts:
        report["noise"] = noise(options)
    if "folding" in parts:
        report["folding"] = folding(options)
    if "orders" in parts:
        report["orders"] = orders(options.binary, options.runs)
    if "tokenizing" in parts:
        python = os.environ.get("MINDPIPE_PEER_PYTHON", os.path.join(ROOT, ".venv-peers", "bin", "python"))
        try:
            report["tokenizing"] = tokenizing(python, os.path.join(os.path.dirname(options.binary), "tests", "ids_of_texts"),
                                              options.binary, options.runs)
        except Ended as why:  # what the other parts took an hour for is worth a report
            report["tokenizing"] = {"missing": str(why)}
            print(why)
    return report


def main():
    options = options_of_command_line()
    report = measure(options)
    found, against = figures(report)
    report["musts"] = verdicts.judge(found, verdicts.Machine(options.instructions, PACKED_WEIGHTS), against)
    report["summary"] = verdicts.summary(report["musts"])
    print("\n" + "\n".join(verdicts.table(report["musts"])) + "\n" + report["summary"])
    output = options.output or os.path.join(options.runs, "bench.json")
    with open(output, "w") as file:
        json.dump(report, file, indent=1)
    print("written to %s" % output)
    sys.exit(1 if options.judge and verdicts.missed(report["musts"]) else 0)


if __name__ == "__main__":
    main()
