"""Parts that ask the device itself: what it is, its fastest products, and what its memory holds."""
import json
import os
import re
import shutil
import time

import running
import training
from reading import FAILED, MISSING, PASSED, TIMED_OUT, first_complaint


def graphics_of(text):
    """The line of `mindpipe-train doctor` that names GPUs, or says why there are none."""
    line = next((line for line in text.splitlines() if line.startswith("graphics")), "")
    return line[len("graphics"):].strip()


def looked_at(check, seconds):
    code, text, _ = running.run([os.path.join(check.bundle, "bin", "mindpipe-train"), "doctor"],
                                check.environment, seconds, check.log("doctor"))
    check.graphics = graphics_of(text)
    if code != 0 or not check.graphics:
        return (TIMED_OUT if code is None else FAILED), "mindpipe-train doctor %s: %s" % (
            running.how_it_ended(code), first_complaint(text)), {}
    return PASSED, check.graphics, {"doctor": text.splitlines()}


def tuning(bundle, case, table):
    """The command that times the products of a case."""
    return [
        os.path.join(bundle, "bin", "mindpipe-train"), "doctor", "--tune", table, "--config",
        os.path.join(bundle, "configs", case.config + ".yaml"),
        *("%s=%s" % item for item in training.work_of(case, "cuda").items())
    ]


def tuned(check, seconds):
    """Times the products of GPT-2 124M, and trains with the fastest algorithms."""
    before = check.runs.get("gpt2-124m")
    if check.device != "cuda" or before is None:
        return MISSING, ("a processor has no table of algorithms"
                         if check.device != "cuda" else "gpt2-124m has no figures to compare with"), {}
    case, table = training.CASES["gpt2-124m"], check.path("products.table")
    code, text, spent = running.run(tuning(check.bundle, case, table), check.environment, seconds, check.log("tune"))
    if code != 0:
        return (TIMED_OUT if code is None else FAILED), "doctor --tune %s: %s" % (
            running.how_it_ended(code), first_complaint(text)), {}
    with open(table) as file:
        lines = file.read().splitlines()
    code, text, figures = training.train(case, "gpt2-124m-tuned", check, seconds - spent,
                                         {"device.kernels": table})
    if figures is None:
        return (TIMED_OUT if code is None else FAILED), first_complaint(text), {"table": lines}
    figures.update(table=lines, of_untuned=figures["tokens_per_second"] / before["tokens_per_second"])
    return PASSED, "%.0f tokens/s, %.2f x without" % (figures["tokens_per_second"],
                                                      figures["of_untuned"]), figures


def ledger_bytes(text):
    """The sum of what a run says that it holds, class by class ("activations  1234.5 MiB")."""
    told = text.split("memory of this rank:", 1)
    lines = told[1].splitlines()[1:] if len(told) == 2 else []
    sizes = []
    for line in lines:
        found = re.search(r"^\s+(\S.*\S)\s+([\d.]+) (MiB|GiB)", line)
        if not found:
            break
        if found.group(1) != "total":
            sizes.append(float(found.group(2)) * (1 << (20 if found.group(3) == "MiB" else 30)))
    return sum(sizes)


def used_memory(check, command, seconds=3):
    """Bytes that are in use on the first GPU that this job may use, for all processes; none: nobody says."""
    lent = check.environment.get("CUDA_VISIBLE_DEVICES", "").split(",")[0].strip()
    which = ["-i", lent] if lent else []
    code, text, _ = running.run([*command, *which, "--query-gpu=memory.used", "--format=csv,noheader,nounits"],
                                check.environment, seconds, check.log("nvidia-smi"))
    try:
        return int(text.split()[0]) << 20 if code == 0 else None
    except (ValueError, IndexError):
        return None


def device_memory(check, seconds):
    """Asks the driver beside a training: what lies outside the ledger is the runtime's and the libraries'."""
    found = shutil.which("nvidia-smi", path=check.environment["PATH"] + ":/usr/bin")
    if check.device != "cuda" or found is None:
        return MISSING, ("a processor's memory is no device's"
                         if check.device != "cuda" else "nvidia-smi is not on this machine"), {}
    start, answers = time.monotonic(), [used_memory(check, [found])]
    if answers[0] is None:
        return MISSING, "nvidia-smi does not say what is in use", {}

    def look():
        if answers[-1] is not None:  # one that does not answer is asked no more
            answers.append(used_memory(check, [found]))
        return False
    code, text, figures = training.train(training.CASES["gpt2-124m"], "memory", check,
                                         seconds - (time.monotonic() - start), done=look)
    ledger = ledger_bytes(text)
    held = max(answer for answer in answers if answer is not None) - answers[0]
    if not ledger or not held:
        return (FAILED if code not in (0, None) else MISSING), "no figures: %s" % first_complaint(text), {}
    return PASSED, "%.0f MiB on the device, %.0f in the ledger, %.0f beside it" % (
        held / 2**20, ledger / 2**20, (held - ledger) / 2**20), {"device": held, "ledger": ledger}
