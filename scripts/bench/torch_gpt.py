#!/usr/bin/env python3
"""Trains GPT-2 124M on the CPU or a GPU the way a careful user of PyTorch does: fused attention, fused AdamW,
bf16 autocast or f32.

    torch_gpt.py [--device cpu] [--precision bf16] [--batch 4] [--micro-batch 4] [--steps 4] [--threads 2]
    [--compile] ...

Prints a line of JSON when the first step has ended and another, the result, at the end. The vocabulary is
50,304 by default (50,257 padded to a multiple of 64, which is faster); loss and speed are those of random
tokens.
"""
import argparse
import json
import platform
import resource
import statistics
import time

import torch
import torch.nn as nn
import torch.nn.functional as F


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.ln_1, self.ln_2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention, self.projection = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.fc, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        batch, sequence, width = x.shape
        q, k, v = (t.view(batch, sequence, self.heads, -1).transpose(1, 2)
                   for t in self.attention(self.ln_1(x)).split(width, 2))
        if hasattr(F, "scaled_dot_product_attention"):
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        else:
            unseen = torch.ones(sequence, sequence, dtype=torch.bool).triu(1)
            y = (q @ k.transpose(-1, -2) * q.shape[-1]**-0.5).masked_fill(unseen, -torch.inf).softmax(-1).to(
                v.dtype) @ v
        x = x + self.projection(y.transpose(1, 2).reshape(batch, sequence, width))
        return x + self.down(F.gelu(self.fc(self.ln_2(x)), approximate="tanh"))


class GPT(nn.Module):
    def __init__(self, vocabulary, context, layers, width, heads):
        super().__init__()
        self.wte, self.wpe = nn.Embedding(vocabulary, width), nn.Embedding(context, width)
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(layers))
        self.ln_f = nn.LayerNorm(width)
        for parameter in self.parameters():
            if parameter.dim() >= 2:
                nn.init.normal_(parameter, std=0.02)

    def forward(self, tokens, targets):
        x = self.wte(tokens) + self.wpe.weight[: tokens.shape[1]]
        for block in self.blocks:
            x = block(x)
        logits = F.linear(self.ln_f(x), self.wte.weight)
        return F.cross_entropy(logits.view(-1, logits.shape[-1]), targets.view(-1))


def adamw(model, rate, device):
    """AdamW with decay on matrices only; fused where this version has it for the device. Returns the
    optimizer and its kind."""
    groups = [{"params": [p for p in model.parameters() if p.dim() >= 2], "weight_decay": 0.1},
              {"params": [p for p in model.parameters() if p.dim() < 2], "weight_decay": 0.0}]
    for kind in ("fused", "foreach"):
        try:
            optimizer = torch.optim.AdamW(groups, lr=rate, betas=(0.9, 0.95), **{kind: True})
            # some versions take the argument and refuse the CPU at the first step
            probe = torch.zeros(1, device=device, requires_grad=True)
            probe.grad = torch.zeros(1, device=device)
            torch.optim.AdamW([probe], **{kind: True}).step()
            return optimizer, kind
        except (RuntimeError, TypeError):
            continue
    return torch.optim.AdamW(groups, lr=rate, betas=(0.9, 0.95)), "plain"


def wait_for(device):
    if device == "cuda":
        torch.cuda.synchronize()


def peak_mib(device):
    """On a GPU what PyTorch has held of its memory, else what the process has held."""
    if device == "cuda":
        return torch.cuda.max_memory_allocated() / 2**20
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def product_rate(dtype, device, seconds=1.0):
    """The best rate of large products of this dtype and these threads, in GFLOP/s."""
    n, best = 8192 if device == "cuda" else 2048, 0.0
    a, b = torch.randn(n, n, device=device).to(dtype), torch.randn(n, n, device=device).to(dtype)
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        wait_for(device)
        start = time.perf_counter()
        a @ b
        wait_for(device)
        best = max(best, 2e-9 * n**3 / (time.perf_counter() - start))
    return best


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--precision", choices=["f32", "bf16"], default="bf16")
    parser.add_argument("--batch", type=int, default=4, help="sequences a step")
    parser.add_argument("--micro-batch", type=int, default=0, help="sequences at a time; 0: the batch")
    parser.add_argument("--steps", type=int, default=4, help="with those that warm up")
    parser.add_argument("--warm-up", type=int, default=1, help="so many steps are not counted")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--compile", action="store_true", help="through torch.compile")
    parser.add_argument("--peak", action="store_true", help="also measure the rate of large products")
    parser.add_argument("--sequence", type=int, default=1024)
    parser.add_argument("--vocabulary", type=int, default=50304)
    parser.add_argument("--layers", type=int, default=12)
    parser.add_argument("--width", type=int, default=768)
    parser.add_argument("--heads", type=int, default=12)
    options = parser.parse_args()
    micro_batch = options.micro_batch or options.batch
    if options.batch % micro_batch or not 0 < options.warm_up < options.steps:
        parser.error("the batch must be a multiple of --micro-batch, and --steps more than --warm-up")

    torch.manual_seed(1)
    torch.set_num_threads(options.threads)
    model = GPT(options.vocabulary, options.sequence, options.layers, options.width,
                options.heads).to(options.device)
    optimizer, optimizer_kind = adamw(model, 3e-4, options.device)
    forward = torch.compile(model) if options.compile else model
    pieces = options.batch // micro_batch

    seconds, losses = [], []
    for step in range(options.steps):
        tokens = torch.randint(0, min(50257, options.vocabulary), (options.batch, options.sequence + 1))
        wait_for(options.device)
        start = time.perf_counter()
        tokens = tokens.to(options.device)
        # read once a step: a GPU is not waited for in between
        loss_sum = torch.zeros((), device=options.device)
        for piece in tokens.split(micro_batch):
            with torch.autocast(options.device, dtype=torch.bfloat16, enabled=options.precision == "bf16"):
                loss = forward(piece[:, :-1].contiguous(), piece[:, 1:].contiguous()) / pieces
            loss.backward()
            loss_sum += loss.detach()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        losses.append(loss_sum.item())
        wait_for(options.device)
        seconds.append(time.perf_counter() - start)
        if step == 0:
            print(json.dumps({"first_step_seconds": seconds[0]}), flush=True)

    peak = peak_mib(options.device)  # before the measurement of products
    tokens_a_step = options.batch * options.sequence
    result = {
        "tokens_per_second": tokens_a_step / statistics.median(seconds[options.warm_up:]),
        "step_seconds": seconds[options.warm_up:],
        "first_step_seconds": seconds[0],
        "peak_mib": peak,
        "loss_first": losses[0],
        "loss_last": losses[-1],
        "precision": options.precision,
        "batch": options.batch,
        "micro_batch": micro_batch,
        "sequence": options.sequence,
        "vocabulary": options.vocabulary,
        "threads": options.threads,
        "optimizer": optimizer_kind,
        "compiled": options.compile,
        "fused_attention": hasattr(F, "scaled_dot_product_attention"),
        "parameters": sum(p.numel() for p in model.parameters()),
        "torch": torch.__version__,
        "python": platform.python_version(),
    }
    if options.peak:
        result["product_gflops"] = product_rate(
            torch.bfloat16 if options.precision == "bf16" else torch.float32, options.device)
    print(json.dumps(result), flush=True)


if __name__ == "__main__":
    main()
