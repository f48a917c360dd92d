#!/usr/bin/env python3
"""MindPipe against PyTorch, side by side on this machine: GPT-2 124M training on the CPU.

    bench.py [--parts products,training,layouts,sums,waiting] [--precisions f32,bf16] [--batch 2] [--micro-batch 1] [--steps 3] [--repeats 3]
             [--threads 2] [--compile] [--output runs/bench/bench.json] [--set key=value ...]

Runs `mindpipe-train` and torch_gpt.py in turn, `--repeats` times, each run in a process of its own; the first step of a run warms up
and is not counted. Peak memory is that of the steps (with the saving of weights at the end: whole_peak_mib). Figures are medians of
the runs' medians; ratios are medians over the pairs of neighbouring runs.
PyTorch's interpreter: $MINDPIPE_PEER_PYTHON, else .venv-peers/bin/python (`make bench-peers`), else /usr/bin/python3.

products: our large products and the raw rate of the instruction they are made of; the share of a whole step is of the former.
training: GPT-2 124M in each precision. sums: the fixed tree over two ranks beside MPI_Allreduce.
waiting: the share of its rate that a rank on one processor keeps while it waits for a message in the background.
layouts: the same model with 3 layers and batches of its own: two ranks with one thread each against one rank with two threads (data, tensor,
pipeline), and one rank whose arithmetic is cut as if it were four (shards) against plain; shards = degrees is what every run has.
`--compile` adds torch.compile as another column. Exit code 0 when the figures were taken, whatever they are.
"""
import argparse
import json
import os
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time

from token_pair import write_tokens

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
TORCH_SCRIPT = os.path.join(ROOT, "scripts", "bench", "torch_gpt.py")
LAYERS, WIDTH, SEQUENCE, PARAMETERS = 12, 768, 1024, 124_439_808  # with 50,257 rows in the table, which is counted once
PARTS = ("products", "training", "layouts", "sums", "waiting")
LAYOUTS = (("data", 2, {"grid.data": 2, "reproducible.data": 2}, 16, 4), ("tensor", 2, {"grid.tensor": 2, "reproducible.tensor": 2}, 16, 4),
           ("pipeline", 2, {"grid.pipeline": 2}, 32, 1),
           ("shards", 1, {"reproducible.data": 2, "reproducible.tensor": 2}, 16, 4))  # name, ranks, settings, batch, micro-batch
LAYOUT_LAYERS = 3
MUST = {"f32": {"speed": 1.1, "memory": 0.8}, "bf16": {"speed": 1.5, "memory": 0.8}}


def fail(sentence):
    sys.exit("bench.py: " + sentence)


def peer_python():
    for python in (os.environ.get("MINDPIPE_PEER_PYTHON"), os.path.join(ROOT, ".venv-peers", "bin", "python"), "/usr/bin/python3"):
        if python and shutil.which(python) and subprocess.run([python, "-c", "import torch"], capture_output=True).returncode == 0:
            return python
    fail("no interpreter here imports torch; run scripts/bench/peers.sh, or name one in MINDPIPE_PEER_PYTHON")


def watch_children(parent, peak, stop):
    """Keeps the largest sum of resident memory of all descendants of `parent`: what several ranks take together."""
    page = os.sysconf("SC_PAGE_SIZE")
    while not stop.wait(0.2):
        parents, resident = {}, {}
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open("/proc/%s/stat" % pid) as file:
                    fields = file.read().rsplit(")", 1)[1].split()
            except OSError:
                continue
            parents[int(pid)], resident[int(pid)] = int(fields[1]), int(fields[21]) * page
        family = {parent}
        for _ in range(4):
            family |= {pid for pid, of in parents.items() if of in family}
        peak[0] = max(peak[0], sum(resident.get(pid, 0) for pid in family))


def peak_so_far(pid):
    """MiB of resident memory at the peak of a process that still runs; None when it has gone."""
    try:
        with open("/proc/%d/status" % pid) as file:
            return next(int(line.split()[1]) / 1024 for line in file if line.startswith("VmHWM"))
    except (OSError, StopIteration):
        return None


def run_process(command, environment, on_line=None, on_start=None):
    """Runs to the end. Returns (start, standard output, MiB at the peak); stops everything if it fails."""
    with tempfile.TemporaryFile("w+") as errors:
        start = time.time()
        process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=errors, text=True, cwd=ROOT)
        if on_start:
            on_start(process.pid)
        family, stop = [0], threading.Event()
        ranks = command[0] == "mpirun"
        watcher = threading.Thread(target=watch_children, args=(process.pid, family, stop))
        if ranks:  # one process alone needs no watching: the kernel keeps its peak
            watcher.start()
        lines = []
        for line in process.stdout:
            lines.append(line)
            if on_line:
                on_line(line)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        stop.set()
        if ranks:
            watcher.join()
        if process.returncode != 0:
            errors.seek(0)
            fail("'%s' ended with %d:\n%s" % (" ".join(command), process.returncode, "".join(lines[-15:]) + errors.read()[-3000:]))
    return start, lines, family[0] / 2**20 if ranks else usage.ru_maxrss / 1024


def run_mindpipe(options, precision, batch, micro_batch, threads, ranks=1, extra=None):
    """One run of its own, in a directory that goes with it; `extra` are further settings."""
    folder = tempfile.mkdtemp(prefix="bench-", dir=options.runs)
    try:
        tokens = os.path.join(folder, "tokens")
        write_tokens(tokens, (options.steps + 1) * batch * (SEQUENCE + 1))
        settings = {"run.dir": folder, "run.resume": "never", "data.train": tokens, "data.validation": tokens, "train.steps": options.steps,
                    "train.batch": batch, "train.micro_batch": micro_batch, "train.precision": precision, "train.evaluate_every": 0,
                    "optimizer.rate.warmup": 0, "checkpoint.every": 0, "device.threads": threads, "grid.data": 1, "reproducible.data": 1}
        settings.update(extra or {})
        settings.update(setting.split("=", 1) for setting in options.set)
        command = [options.binary, "train", "--config", options.config, *("%s=%s" % item for item in settings.items())]
        environment = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
        if ranks > 1:
            environment["OMPI_MCA_btl_vader_single_copy_mechanism"] = "none"
            command = ["mpirun", "--oversubscribe", "--bind-to", "none", "-np", str(ranks), *command]
        metrics, seen, stop = os.path.join(folder, "metrics.jsonl"), {}, threading.Event()

        def watch(pid):  # notes when the first step's line is whole, and the peak of the steps without the saving that follows them
            while not stop.wait(0.01):
                lines = 0
                if os.path.exists(metrics):
                    with open(metrics) as file:
                        lines = file.read().count("\n")
                if lines >= 1:
                    seen.setdefault("first", time.time())
                if lines >= options.steps - 1:
                    seen["peak"] = peak_so_far(pid)
                    return

        watchers = []

        def on_start(pid):
            watchers.append(threading.Thread(target=watch, args=(pid,)))
            watchers[0].start()

        try:
            start, _, whole_peak = run_process(command, environment, on_start=on_start)
        finally:
            stop.set()
            for watcher in watchers:
                watcher.join()
        with open(metrics) as file:
            steps = [json.loads(line) for line in file]
        steps = [step for step in steps if "tokens_per_second" in step]
        if len(steps) != options.steps:
            fail("%s has %d steps with tokens_per_second (expected %d)" % (metrics, len(steps), options.steps))
        rates = [step["tokens_per_second"] for step in steps]
        tokens_a_step = batch * SEQUENCE
        return {"tokens_per_second": statistics.median(rates[1:]), "step_seconds": [tokens_a_step / rate for rate in rates[1:]],
                "first_step_seconds": tokens_a_step / rates[0], "loss_last": steps[-1]["loss"],
                "peak_mib": seen.get("peak") or whole_peak if ranks == 1 else whole_peak, "whole_peak_mib": whole_peak,
                "to_first_step_seconds": seen["first"] - start - tokens_a_step / rates[0] if "first" in seen else None}
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def run_torch(options, precision, compiled=False):
    first = []

    def on_line(line):
        if not first and "first_step_seconds" in line:
            first.append(time.time())

    command = [options.python, TORCH_SCRIPT, "--precision", precision, "--batch", str(options.batch), "--micro-batch", str(options.micro_batch),
               "--steps", str(options.steps), "--threads", str(options.threads), "--sequence", str(SEQUENCE), "--peak"]
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


def compare(options, precision):
    runs = {"mindpipe": [], "torch": []}
    if options.compile:
        runs["torch compiled"] = []
    for repeat in range(options.repeats):
        for who in list(runs)[:: 1 if repeat % 2 == 0 else -1]:  # turn about, so that neither always runs on a warm machine
            print("%s, %s, run %d of %d" % (precision, who, repeat + 1, options.repeats), file=sys.stderr, flush=True)
            if who == "mindpipe":
                runs[who].append(run_mindpipe(options, precision, options.batch, options.micro_batch, options.threads))
            else:
                runs[who].append(run_torch(options, precision, who == "torch compiled"))
    return runs


def print_comparison(precision, runs, product_rate):
    """`product_rate`: GFLOP/s of our own large products, all threads; 0 where they were not measured."""
    peak = max(run["product_gflops"] for run in runs["torch"])
    print("\nGPT-2 124M, %s, sequence %d, batch %d, micro-batch %d, %d threads; torch %s, its large products %.0f GFLOP/s (the shares are of them)"
          % (precision, SEQUENCE, runs["torch"][0]["batch"], runs["torch"][0]["micro_batch"], runs["torch"][0]["threads"],
             runs["torch"][0]["torch"], peak))
    print("%-16s %10s %10s %10s %12s %14s %16s" % ("", "tokens/s", "step s", "peak MiB", "start s", "causal share", "full share"))
    for who, many in runs.items():
        speed = median_of(many, "tokens_per_second")
        print("%-16s %10.1f %10.2f %10.0f %12.2f %12.0f %% %14.0f %%"
              % (who, speed, statistics.median(s for run in many for s in run["step_seconds"]), median_of(many, "peak_mib"),
                 median_of(many, "to_first_step_seconds"), 100 * share_of_peak(speed, peak, True), 100 * share_of_peak(speed, peak, False)))
    summary = {}
    for who in list(runs)[1:]:
        speed, memory = ratio(runs["mindpipe"], runs[who], "tokens_per_second"), ratio(runs["mindpipe"], runs[who], "peak_mib")
        must = MUST[precision]
        print("mindpipe / %-14s tokens/s %.2f x (must %.1f), peak memory %.2f x (must %.1f)" % (who, speed, must["speed"], memory, must["memory"]))
        summary[who] = {"speed_ratio": speed, "memory_ratio": memory}
    if product_rate:
        share = share_of_peak(median_of(runs["mindpipe"], "tokens_per_second"), product_rate, True)
        print("whole step: %.0f %% of the rate of our own large products, %.0f GFLOP/s (must 55 %%)" % (100 * share, product_rate))
        summary["share_of_own_products"] = share
    print("start to first step: %.2f s (must 3 s)" % median_of(runs["mindpipe"], "to_first_step_seconds"))
    return dict(summary, product_gflops=peak)


def layouts(options, precision):
    """Another layout of the same two processors against one rank with two threads."""
    results = {}
    print("\nGPT-2's width and table, %d layers, %s: against one rank with two threads, tokens/s" % (LAYOUT_LAYERS, precision))
    for name, ranks, extra, batch, micro_batch in LAYOUTS:
        size, pairs = {"model.layers": LAYOUT_LAYERS}, []
        for repeat in range(options.repeats):
            print("%s, layouts, %s, run %d of %d" % (precision, name, repeat + 1, options.repeats), file=sys.stderr, flush=True)
            one = run_mindpipe(options, precision, batch, micro_batch, 2, extra=size)
            two = run_mindpipe(options, precision, batch, micro_batch, 2 // ranks, ranks=ranks, extra=dict(size, **extra))
            pairs.append((one, two))
        results[name] = {"ratio": statistics.median(two["tokens_per_second"] / one["tokens_per_second"] for one, two in pairs), "pairs": pairs}
        print("%-10s %d rank%s, %2d micro-batches, %d tokens a step: %.2f x%s"
              % (name, ranks, "s" if ranks > 1 else " ", batch // micro_batch, batch * SEQUENCE, results[name]["ratio"], " (must 0.85)" if ranks > 1 else ""))
    return results


def run_program(options, command):
    """Runs a program of the bench folder that writes lines of JSON; shows what it prints."""
    program = os.path.join(os.path.dirname(options.binary), "scripts", "bench", command[-1])
    if not os.path.exists(program):
        fail("%s is not there; `make bench` builds it (cmake -DMINDPIPE_BENCH=ON)" % program)
    output = os.path.join(options.runs, command[-1] + ".json")
    environment = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1", OMPI_MCA_btl_vader_single_copy_mechanism="none")
    _, lines, _ = run_process(command[:-1] + [program, "--json", output], environment)
    print("\n" + "".join(lines), end="")
    with open(output) as file:
        return [json.loads(line) for line in file]


def products(options):
    """Every product of the model; says which share of the instruction's own rate the large ones reach."""
    shapes = run_program(options, ["products_bench"])
    large = [shape for shape in shapes if shape["n"] >= 1024 and shape["k"] * shape["m"] >= 768 * 2304]
    rates = {"f32": statistics.median(shape["ours"] for shape in large), "bf16": statistics.median(shape["ours_bf16"] for shape in large)}
    print("large products, medians: f32 %.0f %% of the instruction's rate, bf16 %.0f %% (with tiles: must 42 %%)"
          % (100 * statistics.median(shape["ours"] / shape["peak"] for shape in large),
             100 * statistics.median(shape["ours_bf16"] / shape["peak_bf16"] for shape in large)))
    return {"shapes": shapes, "large_gflops_a_core": rates}


def processor():
    with open("/proc/cpuinfo") as file:
        return next((line.split(":", 1)[1].strip() for line in file if line.startswith("model name")), platform.machine())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--precisions", default="f32,bf16")
    parser.add_argument("--parts", default=",".join(PARTS))
    parser.add_argument("--batch", type=int, default=2)
    parser.add_argument("--micro-batch", type=int, default=1, help="0: the batch")
    parser.add_argument("--steps", type=int, default=3)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--compile", action="store_true")
    parser.add_argument("--binary", default=os.path.join(ROOT, "build", "mindpipe-train"))
    parser.add_argument("--config", default=os.path.join(ROOT, "configs", "gpt2-124m.yaml"))
    parser.add_argument("--runs", default=os.path.join(ROOT, "runs", "bench"), help="where the runs' directories stand while they last")
    parser.add_argument("--output", default="")
    parser.add_argument("--set", action="append", default=[], metavar="key=value", help="further settings of MindPipe")
    options = parser.parse_args()
    options.micro_batch = options.micro_batch or options.batch
    if options.steps < 2 or options.repeats < 1:
        fail("--steps must be at least 2 (the first warms up) and --repeats at least 1")
    for path in (options.binary, options.config):
        if not os.path.exists(path):
            fail("%s is not there; build it first (make), or give --binary and --config" % path)
    os.makedirs(options.runs, exist_ok=True)
    options.python = peer_python()

    precisions, parts = options.precisions.split(","), options.parts.split(",")
    for given, known, what in ((precisions, MUST, "--precisions"), (parts, PARTS, "--parts")):
        for word in given:
            if word not in known:
                fail("%s has '%s' (expected %s, with commas)" % (what, word, " or ".join(known)))

    report = {"processor": processor(), "threads": options.threads, "python": options.python, "load": os.getloadavg(),
              "date": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()), "comparisons": {}, "layouts": {}}
    print("%s, %d threads, load before %.1f" % (report["processor"], options.threads, report["load"][0]))
    if "products" in parts:
        report["products"] = products(options)
    for precision in precisions:
        if "training" in parts:
            runs = compare(options, precision)
            rate = report["products"]["large_gflops_a_core"][precision] * options.threads if "products" in report else 0
            report["comparisons"][precision] = dict(print_comparison(precision, runs, rate), runs=runs)
    if "layouts" in parts:
        report["layouts"][precisions[0]] = layouts(options, precisions[0])
    if "sums" in parts:
        report["sums"] = run_program(options, ["mpirun", "--oversubscribe", "--bind-to", "none", "-np", "2", "sums_bench"])
    if "waiting" in parts:
        report["waiting"] = run_program(options, ["mpirun", "--oversubscribe", "--bind-to", "none", "-np", "2", "waiting_bench"])
        worst = min(size["of_processor"] for size in report["waiting"])
        print("a rank that waits in the background computes at %.3f of its rate at least (must 0.97)" % worst)
    output = options.output or os.path.join(options.runs, "bench.json")
    with open(output, "w") as file:
        json.dump(report, file, indent=1)
    print("\nwritten to %s" % output)


if __name__ == "__main__":
    main()
