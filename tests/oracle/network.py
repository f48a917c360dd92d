"""What the models of this folder are made of: products, norms, attention, in the precision that is asked for.

Precisions: f32 and f64 compute everything so. bf16 is what autocast does with fused attention: f32 weights,
residual stream, norms, softmax and loss; products of bf16 operands. bf16_model is model.to(torch.bfloat16),
with f32 masters as Megatron and FSDP keep them: weights and activations are bf16 tensors, every operation is
PyTorch's own for those, the loss is that of float logits, and gradients of micro-batches are added in f32.
What it rounds, and where, is PyTorch's choice; of several ways the more exact one is taken: the fused norm
and attention where this PyTorch has them, rotation in f32.
"""
import math

import torch
import torch.nn.functional as F

PRECISIONS = ("f32", "f64", "bf16", "bf16_model")
ACTIVATIONS = {
    "gelu": lambda x: F.gelu(x, approximate="tanh"), "gelu_exact": F.gelu, "relu": F.relu, "silu": F.silu
}


class Network:
    """The forward pass of a model, a function of its weights by name. Settings are texts."""
    STATISTICS = ()

    def __init__(self, weights, settings, precision):
        self.weights = self.masters = weights
        self.settings = settings
        self.whole_bf16 = precision == "bf16_model"
        self.exact = torch.float64 if precision == "f64" else torch.float32
        self.operand = torch.bfloat16 if precision.startswith("bf16") else self.exact
        self.heads = int(settings["heads"])
        self.rms = settings.get("norm", "layer") == "rms"
        self.epsilon = float(settings.get("norm_epsilon", 1e-5))

    def prepare(self):
        """To be called before each forward pass."""
        if self.whole_bf16:
            self.weights = {name: master.to(torch.bfloat16) for name, master in self.masters.items()}

    def end_step(self):
        """To be called behind each update."""

    def count(self, prefix):
        """How many layers have weights."""
        return 1 + max(int(name[len(prefix):].split(".")[0]) for name in self.weights if name.startswith(prefix))

    def times(self, x, weight, bias=None):
        return F.linear(x.to(self.operand), weight.to(self.operand),
                        None if bias is None else bias.to(self.operand))

    def product(self, x, path):
        return self.times(x, self.weights[path + ".weight"], self.weights.get(path + ".bias"))

    def norm(self, x, path):
        gain, offset = self.weights[path + ".weight"], self.weights.get(path + ".bias")
        x = x if self.whole_bf16 else x.to(self.exact)
        if not self.rms:
            return F.layer_norm(x, x.shape[-1:], gain, offset, self.epsilon)
        if self.whole_bf16 and hasattr(F, "rms_norm"):
            y = F.rms_norm(x, x.shape[-1:], gain, self.epsilon)
        else:  # as Llama was published
            exact = x.to(self.exact)
            y = (exact * torch.rsqrt(exact.pow(2).mean(-1, keepdim=True) + self.epsilon)).to(x.dtype) * gain
        return y if offset is None else y + offset

    def embedding(self, ids, path, padding=None):
        """Rows of a table; that of the token `padding` learns nothing from it."""
        return F.embedding(ids, self.weights[path + ".weight"], padding)

    def logits_of(self, x, table, bias=None):
        return self.times(x, table, bias).to(self.exact)

    def split(self, x, heads):
        """[samples, rows, heads * width] as [samples, heads, rows, width]."""
        return x.view(*x.shape[:2], heads, -1).transpose(1, 2)

    def joined(self, x):
        return x.transpose(1, 2).flatten(2)

    def attend(self, q, k, v, causal=False, seen=None):
        """Attention of heads [samples, heads, rows, width]: a query sees the keys up to itself, or those for
        which `seen`, [samples, 1, 1, keys], is true, or all. One that sees none gets zeros."""
        blind = None if seen is None else ~seen.any(-1, keepdim=True)
        if self.whole_bf16 and (blind is None or not blind.any()) and hasattr(F, "scaled_dot_product_attention"):
            return self.joined(F.scaled_dot_product_attention(q, k, v, attn_mask=seen, is_causal=causal))
        if not self.whole_bf16:
            q, k = q.to(self.exact), k.to(self.exact)
        scores = q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])
        if causal:
            scores = scores.masked_fill(torch.ones(scores.shape[-2:], dtype=torch.bool).triu(1), -math.inf)
        if seen is not None:
            scores = scores.masked_fill(~(seen | blind), -math.inf)
        shares = scores.softmax(-1)
        if seen is not None:
            shares = shares.masked_fill(blind, 0)
        return self.joined(shares.to(v.dtype) @ v)

    def activation(self, x):
        return ACTIVATIONS[self.settings.get("mlp", "gelu")](x)
