"""A network of cells in plain PyTorch, its convolutions PyTorch's own: two states go from block to block of a cell.

  metadata     norm_epsilon (1e-5); padding: the token whose row learns nothing as an input; blocks: those of all cells, with
               commas; each is, with spaces, its side, its place in the cell, left and right branch, add, multiply or concat, and
               the state that is added to it (0: none); a branch is its input (1: the newest state, 2: the one before), norm
               (none, own, shared), word (none: there is no branch), activation, and where its weights are
  source           [batch, source_sequence], I32 or I64
  source_lengths   [batch, 1]: how many of its tokens are seen; a query that sees none gets zeros from attention
  tokens, targets  [batch, target_sequence]
  weights      embedding.embedding.weight, for source, target and softmax; bridge.norm and head.final_norm, the last norms of
               either side; of each branch norm, if it has one (a shared one is the left branch's), and
                 conv: over one row a product, else [outputs, taps x channels] and a bias
                 separable.taps.weight, [taps, channels], and a product; light.taps.weight, [taps, channels / shared]
                 {attention,cross}.{q,k,v,output}, without biases; glu.{value,gate}; mlp.{up,output}, and mlp.norm
"""
import collections
import math

import torch
import torch.nn.functional as F

from network import ACTIVATIONS, Network

Branch = collections.namedtuple("Branch", "input norm word activation path")
Block = collections.namedtuple("Block", "side place left right combine residual")


class Cells(Network):
    FIELDS = ("source", "source_lengths", "tokens", "targets")

    def __init__(self, weights, settings, precision):
        super().__init__(weights, settings, precision)
        self.padding = int(settings["padding"])
        self.blocks = []
        for text in settings["blocks"].split(","):
            words = text.split()
            self.blocks.append(Block(words[0], int(words[1]), Branch(*words[2:7]), Branch(*words[7:12]), words[12], words[13]))

    def embedded(self, ids):
        x = self.embedding(ids, "embedding.embedding", self.padding)
        width = x.shape[-1]
        speed = torch.exp(-math.log(1e4) * torch.arange(width // 2, dtype=torch.float64) / (width // 2 - 1))
        angle = torch.outer(torch.arange(ids.shape[1], dtype=torch.float64), speed)
        return x * math.sqrt(width) + torch.cat((angle.sin(), angle.cos()), -1).to(x.dtype)

    def over_rows(self, x, weight, causal, groups):
        """[samples, rows, channels] under weights [outputs, channels of a group, taps]."""
        taps = weight.shape[-1]
        before = taps - 1 if causal else taps // 2
        rows = F.pad(x.to(self.operand).transpose(1, 2), (before, taps - 1 - before))
        return F.conv1d(rows, weight.to(self.operand), groups=groups).transpose(1, 2)

    def conv(self, h, path, taps):
        weight, bias = self.weights[path + "conv.weight"], self.weights[path + "conv.bias"]
        if taps == 1:
            return self.product(h, path + "conv")
        return self.over_rows(h * self.mask, weight.view(weight.shape[0], taps, -1).transpose(1, 2), self.causal, 1) + \
            bias.to(self.operand)

    def separable(self, h, path, taps):
        weight = self.weights[path + "separable.taps.weight"]
        sums = self.over_rows(h * self.mask, weight.t().unsqueeze(1), self.causal, h.shape[-1])
        return self.product(sums, path + "separable")

    def light(self, h, path, taps, shared):
        weight = self.weights[path + "light.taps.weight"].to(self.exact).softmax(0).repeat(1, shared)
        return self.over_rows(h * self.mask, weight.t().unsqueeze(1), self.causal, h.shape[-1])

    def heads_of(self, h, keys, path, heads, **sight):
        q, k, v = (self.split(self.product(t, path + part), heads) for t, part in ((h, "q"), (keys, "k"), (keys, "v")))
        return self.product(self.attend(q, k, v, **sight), path + "output")

    def layer(self, h, branch, act):
        """What a layer gives of h; whether the activation is done."""
        path, (name, *numbers) = branch.path, branch.word.split("-")
        numbers = [int(number) for number in numbers]
        if name in ("conv", "separable", "light"):
            return getattr(self, name)(h, path, *numbers), False
        if name == "attention":
            return self.heads_of(h, h, path + "attention.", numbers[0],
                                 **({"causal": True} if self.causal else {"seen": self.seen})), False
        if name == "cross":
            return self.heads_of(h, self.memory, path + "cross.", numbers[0], seen=self.seen), False
        if name == "glu":
            return self.product(h, path + "glu.value") * torch.sigmoid(self.product(h, path + "glu.gate")), False
        if name == "identity":
            return h, False
        inside = act(self.product(h, path + "mlp.up"))
        if name == "normed_mlp":
            inside = self.norm(inside, path + "mlp.norm")
        return self.product(inside, path + "mlp.output"), True

    def run(self, branch, states, shared):
        act = ACTIVATIONS.get(branch.activation, lambda x: x)
        h = shared if branch.norm == "shared" else states[int(branch.input)]
        if branch.norm == "own":
            h = self.norm(h, branch.path + "norm")
        y, is_done = self.layer(h, branch, act)
        return y if is_done else act(y)

    def block(self, block, states):
        shared = None
        if block.left.norm == "shared":
            shared = self.norm(states[int(block.left.input)], block.left.path + "norm")
        y = self.run(block.left, states, shared)
        if block.right.word != "none":
            other = self.run(block.right, states, shared)
            if block.combine == "concat":
                y = torch.cat((y, other), -1)
            else:
                width, neutral = max(y.shape[-1], other.shape[-1]), float(block.combine == "multiply")
                y, other = (F.pad(t, (0, width - t.shape[-1]), value=neutral) for t in (y, other))
                y = y * other if block.combine == "multiply" else y + other
        if block.residual != "0":
            state = states[int(block.residual)]
            width = max(y.shape[-1], state.shape[-1])
            y = F.pad(y, (0, width - y.shape[-1])) + F.pad(state, (0, width - state.shape[-1]))
        return y

    def side(self, x, name):
        states = {1: x, 2: None}
        for block in self.blocks:
            if block.side == name:
                older = None if block.place == 0 else states[2]
                states = {1: self.block(block, {1: states[1], 2: older}), 2: states[1]}
        return states[1]

    def logits(self, source, source_lengths, tokens):
        rows = torch.arange(source.shape[1]) < source_lengths.view(-1, 1)
        self.seen, self.mask, self.causal = rows.view(-1, 1, 1, source.shape[1]), rows.unsqueeze(-1), False
        self.memory = self.norm(self.side(self.embedded(source), "encoder"), "bridge.norm")
        self.mask, self.causal = 1, True
        x = self.side(self.embedded(tokens), "decoder")
        return self.logits_of(self.norm(x, "head.final_norm"), self.weights["embedding.embedding.weight"])
