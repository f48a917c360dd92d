"""The tiny Evolved Transformer in plain PyTorch, its convolutions PyTorch's own (oneDNN's on a CPU)."""
import math

import torch
import torch.nn as nn
import torch.nn.functional as F

import torch_training


class Rows(nn.Conv1d):
    """A convolution over the rows of [samples, rows, channels], the same number of rows out."""

    def __init__(self, inputs, outputs, taps, causal=False, depthwise=False):
        super().__init__(inputs, outputs, taps, groups=inputs if depthwise else 1, bias=not depthwise)
        self.padded = (taps - 1, 0) if causal else (taps // 2, taps // 2)

    def forward(self, x):
        return super().forward(F.pad(x.transpose(1, 2), self.padded)).transpose(1, 2)


class Norm(nn.LayerNorm):
    """Of f32 numbers, whatever comes: autocast gives bf16 to what follows a product."""

    def __init__(self, width):
        super().__init__(width, 1e-6)

    def forward(self, x):
        return super().forward(x.float())


def separable(inputs, outputs, taps, causal=False):
    return nn.Sequential(Rows(inputs, inputs, taps, causal, True), nn.Linear(inputs, outputs))


def widened(x, width):
    return F.pad(x, (0, width - x.shape[-1]))


class Attention(nn.Module):
    def __init__(self, width, heads, causal=False):
        super().__init__()
        self.heads, self.causal = heads, causal
        self.query, self.key_value = nn.Linear(width, width, bias=False), nn.Linear(width, 2 * width, bias=False)
        self.output = nn.Linear(width, width, bias=False)

    def forward(self, x, memory=None):
        def heads(t):
            return t.view(t.shape[0], t.shape[1], self.heads, -1).transpose(1, 2)

        k, v = self.key_value(x if memory is None else memory).chunk(2, -1)
        y = torch_training.attention(heads(self.query(x)), heads(k), heads(v), self.causal)
        return self.output(y.transpose(1, 2).reshape(x.shape))


class TwoSided(nn.Module):
    def __init__(self, left, right, inner, closing, width):
        super().__init__()
        self.left, self.right, self.closing, self.width = left, right, closing, width
        self.norm = Norm(inner)

    def forward(self, h):
        left = self.left(h)
        return widened(self.closing(self.norm(left + widened(self.right(h), left.shape[-1]))), self.width)


class Encoder(nn.Module):
    def __init__(self, d, heads):
        super().__init__()
        self.norms = nn.ModuleList(Norm(d) for _ in range(4))
        self.glu, self.attention = nn.Linear(d, 2 * d), Attention(d, heads)
        self.sides = TwoSided(nn.Sequential(nn.Linear(d, 4 * d), nn.ReLU()),
                              nn.Sequential(Rows(d, d // 2, 3), nn.ReLU()), 4 * d, separable(4 * d, d // 2, 9), d)
        self.mlp = nn.Sequential(nn.Linear(d, 4 * d), nn.ReLU(), nn.Linear(4 * d, d))

    def forward(self, x):
        x = x + F.glu(self.glu(self.norms[0](x)))
        x = x + self.sides(self.norms[1](x))
        x = x + self.attention(self.norms[2](x))
        return x + self.mlp(self.norms[3](x))


class Decoder(nn.Module):
    def __init__(self, d, heads):
        super().__init__()
        self.norms = nn.ModuleList(Norm(d) for _ in range(5))
        self.first, self.attention = Attention(d, max(min(2 * heads, 16), heads), True), Attention(d, heads, True)
        self.beside, self.cross = Attention(d, heads), Attention(d, heads)
        self.sides = TwoSided(nn.Sequential(separable(d, 2 * d, 11, True), nn.ReLU()), separable(d, d // 2, 7, True),
                              2 * d, separable(2 * d, d, 7, True), d)
        self.mlp = nn.Sequential(nn.Linear(d, 4 * d), nn.SiLU(), Norm(4 * d), nn.Linear(4 * d, d))

    def forward(self, x, memory):
        h = self.norms[0](x)
        x = x + self.first(h) + self.beside(h, memory)
        x = x + self.sides(self.norms[1](x))
        x = x + self.attention(self.norms[2](x))
        x = x + self.cross(self.norms[3](x), memory)
        return x + self.mlp(self.norms[4](x))


class EvolvedTransformer(nn.Module):
    VOCABULARY, ROWS, WIDTH, HEADS = 260, 64, 128, 4

    def __init__(self):
        super().__init__()
        d = self.WIDTH
        self.words = nn.Embedding(self.VOCABULARY, d)
        speed = torch.exp(-math.log(1e4) * torch.arange(d // 2) / (d // 2 - 1))
        angles = torch.outer(torch.arange(self.ROWS), speed)
        self.register_buffer("places", torch.cat((angles.sin(), angles.cos()), 1))
        self.encoder = nn.ModuleList(Encoder(d, self.HEADS) for _ in range(3))
        self.decoder = nn.ModuleList(Decoder(d, self.HEADS) for _ in range(4))
        self.norms = nn.ModuleList(Norm(d) for _ in range(2))

    def forward(self, source, tokens, targets):
        memory, x = (self.words(ids) * math.sqrt(self.WIDTH) + self.places for ids in (source, tokens))
        for cell in self.encoder:
            memory = cell(memory)
        memory = self.norms[0](memory)
        for cell in self.decoder:
            x = cell(x, memory)
        logits = F.linear(self.norms[1](x), self.words.weight)
        return F.cross_entropy(logits.flatten(0, 1), targets.flatten())

    def samples(self, count):
        return tuple(torch.randint(0, 256, (count, self.ROWS)) for _ in range(3))
