#!/usr/bin/env python3
"""Trains a BERT, an encoder-decoder or a Vision Transformer of base size, a tiny Evolved Transformer or WRN-16-4, the way
a careful user of PyTorch does: fused attention, fused AdamW, bf16 autocast or f32, and a head for the rows that are asked
for alone.

    torch_models.py bert|transformer|vit|evolved|wide_resnet [--device cpu] [--precision bf16] [--batch 4] [--steps 4] [--compile] ...

Prints a line of JSON when the first step has ended and another, the result, at the end. Samples are random; no
row of them is padding.
"""
import argparse
import json
import math

import torch
import torch.nn as nn
import torch.nn.functional as F

import torch_evolved
import torch_training


class Attention(nn.Module):
    """Of a sequence to itself, or to a memory."""

    def __init__(self, width, heads, causal=False):
        super().__init__()
        self.heads, self.causal = heads, causal
        self.query, self.key_value = nn.Linear(width, width), nn.Linear(width, 2 * width)
        self.output = nn.Linear(width, width)

    def forward(self, x, memory=None):
        def heads(t):
            return t.view(t.shape[0], t.shape[1], self.heads, -1).transpose(1, 2)

        k, v = self.key_value(x if memory is None else memory).chunk(2, -1)
        y = torch_training.attention(heads(self.query(x)), heads(k), heads(v), self.causal)
        return self.output(y.transpose(1, 2).reshape(x.shape))


class Block(nn.Module):
    """Attention, attention to a memory if there is one, an MLP; each with a norm before it or behind the sum."""

    def __init__(self, width, heads, inner, activation, pre_norm=False, causal=False, crosses=False):
        super().__init__()
        self.activation, self.pre_norm = activation, pre_norm
        self.attention = Attention(width, heads, causal)
        self.cross = Attention(width, heads) if crosses else None
        self.up, self.down = nn.Linear(width, inner), nn.Linear(inner, width)
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(3 if crosses else 2))

    def forward(self, x, memory=None):
        branches = [self.attention, lambda h: self.down(self.activation(self.up(h)))]
        if self.cross is not None:
            branches.insert(1, lambda h: self.cross(h, memory))
        for norm, branch in zip(self.norms, branches):
            x = x + branch(norm(x)) if self.pre_norm else norm(x + branch(x))
        return x


class Bert(nn.Module):
    VOCABULARY, CONTEXT, WIDTH, PICKED = 30522, 512, 768, 76

    def __init__(self):
        super().__init__()
        self.words, self.positions = nn.Embedding(self.VOCABULARY, self.WIDTH), nn.Embedding(
            self.CONTEXT, self.WIDTH)
        self.types, self.norm = nn.Embedding(2, self.WIDTH), nn.LayerNorm(self.WIDTH)
        self.blocks = nn.ModuleList(Block(self.WIDTH, 12, 4 * self.WIDTH, F.gelu) for _ in range(12))
        self.transform, self.last_norm = nn.Linear(self.WIDTH, self.WIDTH), nn.LayerNorm(self.WIDTH)
        self.bias = nn.Parameter(torch.zeros(self.VOCABULARY))

    def forward(self, tokens, picked, targets):
        x = self.norm(self.words(tokens) + self.types.weight[0] + self.positions.weight)
        for block in self.blocks:
            x = block(x)
        rows = x.gather(1, picked[:, :, None].expand(-1, -1, x.shape[-1]))
        rows = self.last_norm(F.gelu(self.transform(rows)))
        logits = F.linear(rows, self.words.weight, self.bias)
        return F.cross_entropy(logits.flatten(0, 1), targets.flatten())

    def samples(self, count):
        picked = torch.stack([torch.randperm(self.CONTEXT)[: self.PICKED].sort().values for _ in range(count)])
        return (torch.randint(0, self.VOCABULARY, (count, self.CONTEXT)), picked,
                torch.randint(0, self.VOCABULARY, (count, self.PICKED)))


class Transformer(nn.Module):
    VOCABULARY, ROWS, WIDTH = 37000, 64, 512

    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(self.VOCABULARY, self.WIDTH)
        speed = 10000**(-torch.arange(0, self.WIDTH, 2) / self.WIDTH)
        angles = torch.outer(torch.arange(self.ROWS), speed)
        self.register_buffer("places", torch.cat((angles.sin(), angles.cos()), 1))
        self.encoder = nn.ModuleList(Block(self.WIDTH, 8, 4 * self.WIDTH, F.relu) for _ in range(6))
        self.decoder = nn.ModuleList(
            Block(self.WIDTH, 8, 4 * self.WIDTH, F.relu, causal=True, crosses=True) for _ in range(6))

    def forward(self, source, tokens, targets):
        memory, x = (self.words(ids) * math.sqrt(self.WIDTH) + self.places for ids in (source, tokens))
        for block in self.encoder:
            memory = block(memory)
        for block in self.decoder:
            x = block(x, memory)
        logits = F.linear(x, self.words.weight)
        return F.cross_entropy(logits.flatten(0, 1), targets.flatten())

    def samples(self, count):
        return tuple(torch.randint(0, self.VOCABULARY, (count, self.ROWS)) for _ in range(3))


class Vit(nn.Module):
    SIDE, PATCH, WIDTH, CLASSES = 224, 16, 768, 1000

    def __init__(self):
        super().__init__()
        self.patches = nn.Conv2d(3, self.WIDTH, self.PATCH, self.PATCH)
        self.first = nn.Parameter(torch.zeros(1, 1, self.WIDTH))
        self.positions = nn.Parameter(torch.zeros((self.SIDE // self.PATCH)**2 + 1, self.WIDTH))
        self.blocks = nn.ModuleList(
            Block(self.WIDTH, 12, 4 * self.WIDTH, F.gelu, pre_norm=True) for _ in range(12))
        self.norm, self.head = nn.LayerNorm(self.WIDTH), nn.Linear(self.WIDTH, self.CLASSES)

    def forward(self, pictures, targets):
        x = self.patches((pictures.float() / 255 - 0.5) / 0.5).flatten(2).transpose(1, 2)
        x = torch.cat((self.first.expand(len(x), -1, -1), x), 1) + self.positions
        for block in self.blocks:
            x = block(x)
        return F.cross_entropy(self.head(self.norm(x[:, 0])), targets)

    def samples(self, count):
        return (torch.randint(0, 256, (count, 3, self.SIDE, self.SIDE), dtype=torch.uint8),
                torch.randint(0, self.CLASSES, (count,)))


class WideBlock(nn.Module):
    """Pre-activation; the stream is a product where extents change."""

    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.norms = nn.ModuleList((nn.BatchNorm2d(inputs), nn.BatchNorm2d(outputs)))
        self.convolutions = nn.ModuleList((nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False),
                                           nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)))
        self.shortcut = nn.Conv2d(inputs, outputs, 1, stride, bias=False) if (inputs, stride) != (outputs, 1) else None

    def forward(self, x):
        a = F.relu(self.norms[0](x), inplace=True)
        stream = x if self.shortcut is None else self.shortcut(a)
        return stream + self.convolutions[1](F.relu(self.norms[1](self.convolutions[0](a)), inplace=True))


class WideResnet(nn.Module):
    """WRN-16-4 in the layout that oneDNN's convolutions like best."""
    CLASSES, WIDTH = 10, 4

    def __init__(self):
        super().__init__()
        widths = [16] + [width * self.WIDTH for width in (16, 32, 64)]
        self.first = nn.Conv2d(3, widths[0], 3, padding=1, bias=False)
        self.blocks = nn.Sequential(*(WideBlock(widths[group - 1 if i == 0 else group], widths[group],
                                                2 if group > 1 and i == 0 else 1)
                                      for group in (1, 2, 3) for i in range(2)))
        self.norm, self.head = nn.BatchNorm2d(widths[3]), nn.Linear(widths[3], self.CLASSES)
        self.to(memory_format=torch.channels_last)

    def forward(self, pictures, targets):
        x = ((pictures.float() / 255 - 0.5) / 0.5).contiguous(memory_format=torch.channels_last)
        x = F.relu(self.norm(self.blocks(self.first(x))), inplace=True).mean((2, 3))
        return F.cross_entropy(self.head(x), targets)

    def samples(self, count):
        return torch.randint(0, 256, (count, 3, 32, 32), dtype=torch.uint8), torch.randint(0, self.CLASSES, (count,))


MODELS = {"bert": Bert, "transformer": Transformer, "vit": Vit, "evolved": torch_evolved.EvolvedTransformer,
          "wide_resnet": WideResnet}


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", choices=MODELS)
    torch_training.add_options(parser)
    options = torch_training.parsed(parser)
    model = MODELS[options.model]()
    torch_training.draw_weights(model)
    print(json.dumps(torch_training.train(options, model, model.samples)), flush=True)


if __name__ == "__main__":
    main()
