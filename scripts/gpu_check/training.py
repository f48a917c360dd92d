"""Training runs of mindpipe-train and of PyTorch on the same model: tokens a second, the mean of the steps
after the first two."""
import array
import json
import os
import random
import re
import shutil
import struct
import sys

import running

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "bench"))
from token_pair import write_tokens  # noqa: E402

WARM_UP = 2  # steps: code is loaded in the first, and what is still queued lies in the second


class Case:
    """A model and a batch. `settings` are mindpipe-train's, `torch` are arguments of torch_gpt.py,
    `parameters` those that products read."""

    def __init__(self, config, steps, batch, micro_batch, sequence, settings=None, torch=(), parameters=0,
                 layers=0, width=0, vocabulary=50257):
        self.config, self.steps, self.sequence = config, steps, sequence
        self.batch, self.micro_batch = batch, micro_batch
        self.settings, self.torch, self.vocabulary = settings or {}, torch, vocabulary
        self.parameters, self.layers, self.width = parameters, layers, width


CASES = {
    "gpt2-124m": Case("gpt2-124m", 20, 64, 32, 1024, {},
                      ("--layers", "12", "--width", "768", "--heads", "12"), 124_439_808, 12, 768),
    "gpt2-1.5b": Case("gpt2-1.5b", 8, 16, 8, 1024,
                      {"train.recompute": "none", "train.zero": 0, "grid.pipeline": 1},
                      ("--layers", "48", "--width", "1600", "--heads", "25"), 1_557_611_200, 48, 1600),
    "llama-8b": Case(
        "llama-8b",
        6,
        2,
        1,
        8192,
        {
            "model.layers": 8,
            "train.recompute": "none",
            "train.zero": 0,
            "train.sequence_parallel": "false",
            "grid.pipeline": 1,
            # without the table of the embedding, which no product reads
            "grid.tensor": 1,
            "reproducible.tensor": 1
        },
        (),
        2_270_236_672,
        8,
        4096),
}
REHEARSAL = Case(
    "gpt-tiny", 4, 2, 1, 32,
    {"model.layers": 2, "model.width": 32, "model.heads": 2, "model.context": 32, "data.sequence": 32},
    ("--layers", "2", "--width", "32", "--heads", "2", "--vocabulary", "256"), 60_000, 2, 32, vocabulary=256)


def steps_of(metrics):
    """The steps that a run has written so far."""
    try:
        with open(metrics) as file:
            lines = file.read().split("\n")[:-1]
    except OSError:
        return []
    return [step for step in map(json.loads, lines) if "tokens_per_second" in step]


def figures_of(rates, loss, case):
    """`rates`: tokens a second of each step. The mean of their times, for a host that runs ahead of its GPU
    sees one step short, the next long."""
    seconds = sum(case.batch * case.sequence / rate for rate in rates[WARM_UP:]) / len(rates[WARM_UP:])
    return {
        "tokens_per_second": case.batch * case.sequence / seconds, "seconds": seconds, "loss": loss,
        "steps": len(rates), "batch": case.batch, "micro_batch": case.micro_batch, "sequence": case.sequence
    }


def work_of(case, device):
    """Settings of what a step computes: a training's, and those whose products are timed."""
    return {
        "device.kind": device, "train.batch": case.batch, "train.micro_batch": case.micro_batch,
        "train.precision": "bf16", "grid.data": 1, "reproducible.data": 1, **case.settings
    }


def train(case, name, check, seconds, more=None, done=lambda: False):
    """(exit code, output, figures or None). The run is ended after its last step: the saving of weights is
    nobody's question here. `more` are settings; `done` is asked now and then."""
    run_folder = check.path("train-" + name)
    os.makedirs(run_folder, exist_ok=True)
    tokens = check.path("tokens-" + name)
    write_tokens(tokens, (case.steps + 1) * case.batch * (case.sequence + 1), case.vocabulary)
    settings = {
        "run.dir": run_folder, "run.resume": "never", "data.train": "[%s]" % tokens, "data.validation": "[%s]" % tokens,
        "train.steps": case.steps, "train.evaluate_every": 0, "checkpoint.every": 0, "optimizer.rate.warmup": 0,
        **work_of(case, check.device), **(more or {})
    }
    command = [
        os.path.join(check.bundle, "bin", "mindpipe-train"), "train", "--config",
        os.path.join(check.bundle, "configs", case.config + ".yaml"), *("%s=%s" % item for item in settings.items())
    ]
    metrics = os.path.join(run_folder, "metrics.jsonl")
    code, text, _ = running.run(command, check.environment, seconds, check.log("train-" + name),
                                lambda: done() or len(steps_of(metrics)) >= case.steps)
    steps = steps_of(metrics)
    shutil.rmtree(run_folder, ignore_errors=True)
    for ending in (".bin", ".idx"):
        os.remove(tokens + ending)
    whole = len(steps) >= case.steps
    return code, text, figures_of([step["tokens_per_second"]
                                   for step in steps], steps[-1]["loss"], case) if whole else None


def train_torch(case, name, check, seconds):
    """The same by PyTorch: compiled, fused attention, fused AdamW, bf16 by autocast."""
    command = [
        check.python,
        os.path.join(check.bundle, "bench", "torch_gpt.py"), "--device", check.device, "--precision", "bf16",
        "--batch",
        str(case.batch), "--micro-batch",
        str(case.micro_batch), "--sequence",
        str(case.sequence), "--steps",
        str(case.steps), *case.torch
    ]
    code, text, _ = running.run(command + ["--compile"] * (check.device == "cuda"), check.users_environment,
                                seconds, check.log("torch-" + name))
    lines = [line for line in text.splitlines() if line.startswith("{") and '"tokens_per_second"' in line]
    if code != 0 or not lines:
        return code, text, None
    result = json.loads(lines[-1])
    figures = figures_of(
        [case.batch * case.sequence / s for s in [result["first_step_seconds"]] + result["step_seconds"]],
        result["loss_last"], case)
    return code, text, dict(figures,
                            **{key: result[key]
                               for key in ("torch", "compiled", "optimizer", "peak_mib")})


def write_llm_c_tokens(path, count, vocabulary):
    """Random tokens in a file as llm.c reads it: 256 words of 32 bits (its number, version 1, the count), then
    words of 16 bits."""
    draw = random.Random(1)
    with open(path, "wb") as file:
        file.write(struct.pack("<3i", 20240520, 1, count).ljust(1024, b"\0"))
        file.write(array.array("H", (draw.randrange(vocabulary) for _ in range(count))).tobytes())


def llm_c_figures(text, case):
    """Milliseconds and loss out of its lines: "step 3/20 | loss 10.9 (..)| norm .. | lr .. | 120.5 ms | ..."."""
    steps = re.findall(r"^step\s+\d+/\d+ \| loss ([\d.]+).*?\| ([\d.]+) ms \|", text, re.MULTILINE)
    if len(steps) <= WARM_UP:
        return None
    return figures_of([case.batch * case.sequence / (float(ms) * 1e-3) for _, ms in steps], float(steps[-1][0]),
                      case)


def llm_c_command(program, tokens, case):
    """GELU within products, as the ledger counts it. Losses are looked at in the first and the last step, on one batch: every 0 steps
    would divide by zero there."""
    return [
        program, "-i", tokens, "-j", tokens, "-e", "d%d" % case.layers, "-b",
        str(case.micro_batch), "-t",
        str(case.sequence), "-d",
        str(case.batch * case.sequence), "-x",
        str(case.steps), "-v", "1000", "-m", "1", "-s", "0", "-ge", "2"
    ]


def train_llm_c(case, name, check, seconds):
    """The same by the program of llm.c that --llmc names: a model of its own numbers, tokens of ours."""
    tokens = check.path("tokens-llm.c.bin")
    write_llm_c_tokens(tokens, (case.steps + 1) * case.batch * case.sequence + 1, case.vocabulary)
    command = llm_c_command(check.llm_c, tokens, case)
    code, text, _ = running.run(command, check.users_environment, seconds, check.log("llm.c-" + name))
    os.remove(tokens)
    return code, text, llm_c_figures(text, case)
