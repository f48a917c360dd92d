"""A network of a space in plain PyTorch, its convolutions PyTorch's own.

  metadata     encoder, decoder: the words of a side's blocks, with commas (conv-3,light-5-4,glu); no encoder: a language
               model; norm_epsilon (1e-5); padding: where there is an encoder, the token whose row learns nothing as an input
  source, source_lengths   [batch, source_sequence], [batch, 1]: how many of its tokens are seen; none without an encoder
  tokens, targets          [batch, sequence]
  weights      embedding.embedding.weight, or encoder.table.embedding.weight, decoder.table.embedding.weight and
               head.classifier.weight; positions of each side; bridge.norm and head.final_norm, the last norms of either side;
               block N as candidate C, blocks.N.C., has a norm and
                 conv: over one row a product, else [outputs, taps x channels] and a bias
                 separable.taps.weight, [taps, channels], and a product
                 light.taps.weight, [taps, channels / shared]
                 {attention,cross}.{q,k,v,output}, without biases; glu.{value,gate}; mlp.{up,output}
"""
import math

import torch
import torch.nn.functional as F

from network import Network


class OfSpace(Network):
    def __init__(self, weights, settings, precision):
        super().__init__(weights, settings, precision)
        self.words = {side: settings[side].split(",") if settings[side] else [] for side in ("encoder", "decoder")}
        self.paths = {}
        for name in weights:
            if name.startswith("blocks."):
                block, candidate = name.split(".")[1:3]
                self.paths[int(block)] = "blocks.%s.%s." % (block, candidate)

    def embedded(self, ids, table, positions, padding=None):
        x = self.embedding(ids, table, padding)
        return x * math.sqrt(x.shape[-1]) + self.weights[positions][:ids.shape[1]].to(x.dtype)

    def over_rows(self, x, weight, causal, groups):
        """[samples, rows, channels] under weights [outputs, channels of a group, taps]."""
        taps = weight.shape[-1]
        before = taps - 1 if causal else taps // 2
        rows = F.pad(x.to(self.operand).transpose(1, 2), (before, taps - 1 - before))
        return F.conv1d(rows, weight.to(self.operand), groups=groups).transpose(1, 2)

    def conv(self, h, path, numbers, causal, mask):
        weight, bias, taps = self.weights[path + "conv.weight"], self.weights[path + "conv.bias"], int(numbers[0])
        if taps == 1:
            return F.relu(self.product(h, path + "conv"))
        y = self.over_rows(h * mask, weight.view(weight.shape[0], taps, -1).transpose(1, 2), causal, 1)
        return F.relu(y + bias.to(y.dtype))

    def separable(self, h, path, numbers, causal, mask):
        taps = self.weights[path + "separable.taps.weight"]
        sums = self.over_rows(h * mask, taps.t().unsqueeze(1), causal, h.shape[-1])
        return F.relu(self.product(sums, path + "separable"))

    def light(self, h, path, numbers, causal, mask):
        taps = self.weights[path + "light.taps.weight"].to(self.exact).softmax(0).repeat(1, int(numbers[1]))
        return self.over_rows(h * mask, taps.t().unsqueeze(1), causal, h.shape[-1])

    def heads_of(self, h, keys, path, heads, **sight):
        q, k, v = (self.split(self.product(t, path + part), heads) for t, part in ((h, "q"), (keys, "k"), (keys, "v")))
        return self.product(self.attend(q, k, v, **sight), path + "output")

    def branch(self, h, word, path, causal, seen, mask, memory):
        name, *numbers = word.split("-")
        if name in ("conv", "separable", "light"):
            return getattr(self, name)(h, path, numbers, causal, mask)
        if name == "attention":
            sight = {"causal": True} if causal else {"seen": seen}
            return self.heads_of(h, h, path + "attention.", int(numbers[0]), **sight)
        if name == "cross":
            return self.heads_of(h, memory, path + "cross.", int(numbers[0]), seen=seen)
        if name == "glu":
            return self.product(h, path + "glu.value") * torch.sigmoid(self.product(h, path + "glu.gate"))
        assert name == "mlp", word
        return self.product(F.gelu(self.product(h, path + "mlp.up"), approximate="tanh"), path + "mlp.output")

    def blocks(self, x, side, seen=None, mask=1, memory=None):
        first = 0 if side == "encoder" else len(self.words["encoder"])
        for block, word in enumerate(self.words[side], first):
            if word != "identity":
                path = self.paths[block]
                x = x + self.branch(self.norm(x, path + "norm"), word, path, side == "decoder", seen, mask, memory)
        return x

    def ends(self, x, table):
        head = self.weights.get("head.classifier.weight")
        return self.logits_of(self.norm(x, "head.final_norm"), self.weights[table + ".weight"] if head is None else head)


class OfTexts(OfSpace):
    FIELDS = ("tokens", "targets")

    def logits(self, tokens):
        x = self.embedded(tokens, "embedding.embedding", "positions.positions.weight")
        return self.ends(self.blocks(x, "decoder"), "embedding.embedding")


class OfPairs(OfSpace):
    FIELDS = ("source", "source_lengths", "tokens", "targets")

    def table(self, side):
        return "embedding.embedding" if "embedding.embedding.weight" in self.weights else side + ".table.embedding"

    def logits(self, source, source_lengths, tokens):
        padding = int(self.settings["padding"])
        rows = torch.arange(source.shape[1]) < source_lengths.view(-1, 1)
        seen, mask = rows.view(-1, 1, 1, source.shape[1]), rows.unsqueeze(-1)
        x = self.embedded(source, self.table("encoder"), "encoder.positions.positions.weight", padding)
        memory = self.norm(self.blocks(x, "encoder", seen, mask), "bridge.norm")
        x = self.embedded(tokens, self.table("decoder"), "bridge.positions.weight", padding)
        return self.ends(self.blocks(x, "decoder", seen, 1, memory), self.table("decoder"))
