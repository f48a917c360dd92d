"""Training runs of mindpipe-train and of PyTorch on the same model: tokens a second, the mean of the steps
after the first two."""
import json
import os
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


def train(case, name, device, bundle, folder, environment, seconds):
    """(exit code, output, figures or None). The run is ended after its last step: the saving of weights is
    nobody's question here."""
    run_folder = os.path.join(folder, "train-" + name)
    os.makedirs(run_folder, exist_ok=True)
    tokens = os.path.join(folder, "tokens-" + name)
    write_tokens(tokens, (case.steps + 1) * case.batch * (case.sequence + 1), case.vocabulary)
    settings = {
        "run.dir": run_folder, "run.resume": "never", "device.kind": device, "data.train": "[%s]" % tokens,
        "data.validation": "[%s]" % tokens, "train.steps": case.steps, "train.batch": case.batch,
        "train.micro_batch": case.micro_batch, "train.precision": "bf16", "train.evaluate_every": 0,
        "checkpoint.every": 0, "optimizer.rate.warmup": 0, "grid.data": 1, "reproducible.data": 1
    }
    settings.update(case.settings)
    command = [
        os.path.join(bundle, "bin", "mindpipe-train"), "train", "--config",
        os.path.join(bundle, "configs", case.config + ".yaml"), *("%s=%s" % item for item in settings.items())
    ]
    metrics = os.path.join(run_folder, "metrics.jsonl")
    code, text, _ = running.run(command, environment, seconds, os.path.join(folder, "train-%s.log" % name),
                                lambda: len(steps_of(metrics)) >= case.steps)
    steps = steps_of(metrics)
    for ending in (".bin", ".idx"):
        os.remove(tokens + ending)
    whole = len(steps) >= case.steps
    return code, text, figures_of([step["tokens_per_second"]
                                   for step in steps], steps[-1]["loss"], case) if whole else None


def train_torch(case, name, device, bundle, folder, environment, python, seconds):
    """The same by PyTorch: compiled, fused attention, fused AdamW, bf16 by autocast."""
    command = [
        python,
        os.path.join(bundle, "bench", "torch_gpt.py"), "--device", device, "--precision", "bf16", "--batch",
        str(case.batch), "--micro-batch",
        str(case.micro_batch), "--sequence",
        str(case.sequence), "--steps",
        str(case.steps), *case.torch
    ]
    code, text, _ = running.run(command + ["--compile"] * (device == "cuda"), environment, seconds,
                                os.path.join(folder, "torch-%s.log" % name))
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
