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

import torch
import torch.nn as nn
import torch.nn.functional as F

import torch_training


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
        y = torch_training.attention(q, k, v, causal=True)
        x = x + self.projection(y.transpose(1, 2).reshape(batch, sequence, width))
        return x + self.down(F.gelu(self.fc(self.ln_2(x)), approximate="tanh"))


class GPT(nn.Module):
    def __init__(self, vocabulary, context, layers, width, heads):
        super().__init__()
        self.wte, self.wpe = nn.Embedding(vocabulary, width), nn.Embedding(context, width)
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(layers))
        self.ln_f = nn.LayerNorm(width)
        torch_training.draw_weights(self)

    def forward(self, tokens, targets):
        x = self.wte(tokens) + self.wpe.weight[: tokens.shape[1]]
        for block in self.blocks:
            x = block(x)
        logits = F.linear(self.ln_f(x), self.wte.weight)
        return F.cross_entropy(logits.view(-1, logits.shape[-1]), targets.view(-1))


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    torch_training.add_options(parser)
    parser.add_argument("--sequence", type=int, default=1024)
    parser.add_argument("--vocabulary", type=int, default=50304)
    parser.add_argument("--layers", type=int, default=12)
    parser.add_argument("--width", type=int, default=768)
    parser.add_argument("--heads", type=int, default=12)
    options = torch_training.parsed(parser)

    def samples(count):
        tokens = torch.randint(0, min(50257, options.vocabulary), (count, options.sequence + 1))
        return tokens[:, :-1].contiguous(), tokens[:, 1:].contiguous()

    model = GPT(options.vocabulary, options.sequence, options.layers, options.width, options.heads)
    result = torch_training.train(options, model, samples)
    result.update(sequence=options.sequence, vocabulary=options.vocabulary,
                  tokens_per_second=result["samples_per_second"] * options.sequence)
    print(json.dumps(result), flush=True)


if __name__ == "__main__":
    main()
