"""Runs of the programs that the bench compares, each in a process of its own, with what they took."""
import json
import os
import shutil
import statistics
import subprocess
import tempfile
import threading
import time

from token_pair import write_tokens

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SEQUENCE, VOCABULARY = 1024, 50257  # of GPT-2


class Ended(SystemExit):
    """A program that failed. Unless someone can do without it, the bench ends with its sentence."""


def fail(sentence):
    raise Ended("bench.py: " + sentence)


def at_once():
    """Words before a command whose processes begin at once when their time has come; none where that is not allowed."""
    first = ["chrt", "-r", "10"]
    return first if subprocess.run([*first, "true"], capture_output=True).returncode == 0 else []


def watch_children(parent, peak, stop):
    """Keeps the largest sum of resident memory of all descendants of `parent`: what several ranks take
    together."""
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
        process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=errors, text=True,
                                   cwd=ROOT)
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
            fail("'%s' ended with %d:\n%s" %
                 (" ".join(command), process.returncode, "".join(lines[-15:]) + errors.read()[-3000:]))
    return start, lines, family[0] / 2**20 if ranks else usage.ru_maxrss / 1024


def tokens_in(folder, samples, sequence, vocabulary):
    """The setting that names as many random tokens as these samples take."""
    prefix = os.path.join(folder, "tokens")
    write_tokens(prefix, samples * (sequence + 1), vocabulary)
    return prefix


def run_mindpipe(options, precision, batch, micro_batch, threads, ranks=1, sequence=SEQUENCE,
                 vocabulary=VOCABULARY, extra=None, warm_up=1, config=None, data=None):
    """One run of its own, in a directory that goes with it: options.steps behind the first `warm_up`. `extra`
    are further settings; `data(folder, samples)` writes samples and gives the source that names them."""
    count = options.steps + warm_up
    folder = tempfile.mkdtemp(prefix="bench-", dir=options.runs)
    try:
        samples = (count + 1) * batch
        source = data(folder, samples) if data else tokens_in(folder, samples, sequence, vocabulary)
        settings = {
            "run.dir": folder, "run.resume": "never", "data.train": source, "data.validation": source,
            "train.steps": count, "train.batch": batch, "train.micro_batch": micro_batch,
            "train.precision": precision, "train.evaluate_every": 0, "optimizer.rate.warmup": 0,
            "checkpoint.every": 0, "device.threads": threads, "grid.data": 1, "reproducible.data": 1
        }
        settings.update(extra or {})
        settings.update(setting.split("=", 1) for setting in options.set)
        command = [
            options.binary, "train", "--config", config or options.config,
            *("%s=%s" % item for item in settings.items())
        ]
        environment = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
        if ranks > 1:
            environment["OMPI_MCA_btl_vader_single_copy_mechanism"] = "none"
            command = ["mpirun", "--oversubscribe", "--bind-to", "none", "-np", str(ranks), *command]
        metrics, seen, stop = os.path.join(folder, "metrics.jsonl"), {}, threading.Event()

        # notes when the first step's line is whole, and the peak of the steps without the saving that follows
        # them
        def watch(pid):
            while not stop.wait(0.01):
                lines = 0
                if os.path.exists(metrics):
                    with open(metrics) as file:
                        lines = file.read().count("\n")
                if lines >= 1:
                    seen.setdefault("first", time.time())
                if lines >= count - 1:
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
        steps = [step for step in steps if "seconds" in step]
        if len(steps) != count:
            fail("%s has %d steps with their seconds (expected %d)" % (metrics, len(steps), count))
        seconds = [step["seconds"] for step in steps]
        return {
            "batch": batch, "micro_batch": micro_batch, "threads": threads,
            "samples_per_second": batch / statistics.median(seconds[warm_up:]),
            "tokens_per_second": batch * sequence / statistics.median(seconds[warm_up:]),
            "step_seconds": seconds[warm_up:],
            "noise_measured": ["gradient_noise" in step for step in steps[warm_up:]],
            "first_step_seconds": seconds[0], "loss_last": steps[-1]["loss"],
            "peak_mib": seen.get("peak") or whole_peak if ranks == 1 else whole_peak,
            "whole_peak_mib": whole_peak,
            "to_first_step_seconds": seen["first"] - start - seconds[0] if "first" in seen else None
        }
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def rate_of_large_products(options, precision):
    """GFLOP/s of our own large products on all threads at once, one process for each."""
    program = os.path.join(os.path.dirname(options.binary), "scripts", "bench", "products_bench")
    outputs = [os.path.join(options.runs, "products-%d.json" % thread) for thread in range(options.threads)]
    running = [
        subprocess.Popen(
            [program, "--rounds", "1", "--only", "n=4096", "--instructions", options.instructions, "--json", output],
            stdout=subprocess.DEVNULL) for output in outputs
    ]
    if any([process.wait() != 0 for process in running]):
        fail("products_bench failed; run %s" % program)
    rate = 0
    for output in outputs:
        with open(output) as file:
            rate += statistics.median(
                json.loads(line)["ours" if precision == "f32" else "ours_bf16"] for line in file)
        os.remove(output)
    return rate


def run_program(options, command, words=()):
    """Runs a program of this folder that writes lines of JSON; shows what it prints."""
    program = os.path.join(os.path.dirname(options.binary), "scripts", "bench", command[-1])
    if not os.path.exists(program):
        fail("%s is not there; `make bench` builds it (cmake -DMINDPIPE_BENCH=ON)" % program)
    output = os.path.join(options.runs, command[-1] + ".json")
    environment = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1",
                       OMPI_MCA_btl_vader_single_copy_mechanism="none")
    _, lines, _ = run_process(command[:-1] + [program, "--json", output, *words], environment)
    print("\n" + "".join(lines), end="")
    with open(output) as file:
        return [json.loads(line) for line in file]
