"""An Evolved Transformer (So, Liang and Le, 2019) in plain PyTorch, its convolutions PyTorch's own.

  metadata     heads; norm_epsilon (1e-5); padding: the token whose row learns nothing as an input
  source           [batch, source_sequence], I32 or I64
  source_lengths   [batch, 1]: how many of its tokens are seen; a query that sees none gets zeros from attention
  tokens, targets  [batch, target_sequence]
  weights      embedding.embedding.weight, for source, target and softmax; bridge.norm and head.final_norm, the last
               norms of either side; every branch N of a cell, encoder.N.{glu,convolution,attention,mlp}. and
               decoder.N.{parallel,convolution,attention,cross,mlp}., has a norm and
                 glu.{value,gate}
                 left, right, inner_norm, closing: products; separable convolutions have taps.weight, [taps, channels],
                   beside them; the encoder's right is a convolution over three rows, [outputs, taps x channels]
                 {attention,cross}.{q,k,v,output}, without biases
                 mlp.{up,output}, in the decoder mlp.norm
"""
import math

import torch
import torch.nn.functional as F

from network import Network


class EvolvedTransformer(Network):
    FIELDS = ("source", "source_lengths", "tokens", "targets")

    def __init__(self, weights, settings, precision):
        super().__init__(weights, settings, precision)
        self.padding = int(settings["padding"])
        self.first_heads = max(min(2 * self.heads, 16), self.heads)
        self.cells = {side: self.count(side + ".") for side in ("encoder", "decoder")}

    def count(self, prefix):
        numbers = [name[len(prefix):].split(".")[0] for name in self.weights if name.startswith(prefix)]
        return 1 + max(int(number) for number in numbers if number.isdigit())

    def embedded(self, ids):
        x = self.embedding(ids, "embedding.embedding", self.padding)
        width = x.shape[-1]
        speed = torch.exp(-math.log(1e4) * torch.arange(width // 2, dtype=torch.float64) / (width // 2 - 1))
        angle = torch.outer(torch.arange(ids.shape[1], dtype=torch.float64), speed)
        return x * math.sqrt(width) + torch.cat((angle.sin(), angle.cos()), -1).to(x.dtype)

    def convolved(self, x, weight, causal, groups):
        """[samples, rows, channels] under weights [outputs, channels of a group, taps]."""
        taps = weight.shape[-1]
        before = taps - 1 if causal else taps // 2
        rows = F.pad(x.to(self.operand).transpose(1, 2), (before, taps - 1 - before))
        return F.conv1d(rows, weight.to(self.operand), groups=groups).transpose(1, 2)

    def separable(self, x, path, causal):
        taps = self.weights[path + ".taps.weight"]
        return self.product(self.convolved(x, taps.t().unsqueeze(1), causal, x.shape[-1]), path)

    def three_rows(self, x, path):
        weight, bias = self.weights[path + ".weight"], self.weights[path + ".bias"]
        y = self.convolved(x, weight.view(weight.shape[0], 3, -1).transpose(1, 2), False, 1)
        return y + bias.to(y.dtype)

    def widened(self, x, width):
        return F.pad(x, (0, width - x.shape[-1]))

    def attention(self, x, keys, path, heads, **sight):
        q, k, v = (self.split(self.product(t, path + part), heads) for t, part in ((x, "q"), (keys, "k"), (keys, "v")))
        return self.product(self.attend(q, k, v, **sight), path + "output")

    def encoder_convolution(self, x, path, mask):
        h = self.norm(x, path + "norm") * mask
        left = F.relu(self.product(h, path + "left"))
        right = F.relu(self.three_rows(h, path + "right"))
        h = self.norm(left + self.widened(right, left.shape[-1]), path + "inner_norm") * mask
        return self.widened(self.separable(h, path + "closing", False), x.shape[-1])

    def decoder_convolution(self, x, path):
        h = self.norm(x, path + "norm")
        left = F.relu(self.separable(h, path + "left", True))
        right = self.separable(h, path + "right", True)
        h = self.norm(left + self.widened(right, left.shape[-1]), path + "inner_norm")
        return self.separable(h, path + "closing", True)

    def encoder(self, source, seen, mask):
        x = self.embedded(source)
        for cell in range(self.cells["encoder"]):
            glu, convolution, attention, mlp = (
                "encoder.%d.%s." % (cell, part) for part in ("glu", "convolution", "attention", "mlp"))
            h = self.norm(x, glu + "norm")
            x = x + self.product(h, glu + "glu.value") * torch.sigmoid(self.product(h, glu + "glu.gate"))
            x = x + self.encoder_convolution(x, convolution, mask)
            h = self.norm(x, attention + "norm")
            x = x + self.attention(h, h, attention + "attention.", self.heads, seen=seen)
            h = F.relu(self.product(self.norm(x, mlp + "norm"), mlp + "mlp.up"))
            x = x + self.product(h, mlp + "mlp.output")
        return self.norm(x, "bridge.norm")

    def decoder(self, tokens, memory, seen):
        x = self.embedded(tokens)
        for cell in range(self.cells["decoder"]):
            both, convolution, attention, cross, mlp = (
                "decoder.%d.%s." % (cell, part) for part in ("parallel", "convolution", "attention", "cross", "mlp"))
            h = self.norm(x, both + "norm")
            x = x + self.attention(h, h, both + "attention.", self.first_heads, causal=True)
            x = x + self.attention(h, memory, both + "cross.", self.heads, seen=seen)
            x = x + self.decoder_convolution(x, convolution)
            h = self.norm(x, attention + "norm")
            x = x + self.attention(h, h, attention + "attention.", self.heads, causal=True)
            h = self.norm(x, cross + "norm")
            x = x + self.attention(h, memory, cross + "cross.", self.heads, seen=seen)
            h = F.silu(self.product(self.norm(x, mlp + "norm"), mlp + "mlp.up"))
            x = x + self.product(self.norm(h, mlp + "mlp.norm"), mlp + "mlp.output")
        return self.norm(x, "head.final_norm")

    def logits(self, source, source_lengths, tokens):
        rows = torch.arange(source.shape[1]) < source_lengths.view(-1, 1)
        seen, mask = rows.view(-1, 1, 1, source.shape[1]), rows.unsqueeze(-1)
        x = self.decoder(tokens, self.encoder(source, seen, mask), seen)
        return self.logits_of(x, self.weights["embedding.embedding.weight"])
