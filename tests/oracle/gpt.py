#!/usr/bin/env python3
"""A decoder in plain PyTorch (1.13 or newer): what the tests compare MindPipe with.

    gpt.py [--precision f32,f64,bf16,bf16_model] [--threads N] FOLDER...

FOLDER/input.safetensors holds the initial weights, the batches and, in its metadata (texts), the settings.

  metadata     heads; key_value_heads (heads); norm layer|rms (layer); norm_epsilon (1e-5); positions
  learned|rotary (learned);
               rotary_base (10000); mlp gelu|gelu_exact|relu|silu|swiglu (gelu); micro_batch (the batch); steps (1: only one
               update; 0: none); rate: one number, or one for each step with commas (1e-3); beta1 (0.9), beta2
               (0.95), epsilon (1e-8), weight_decay (0.1), clip (1; 0: none), label_smoothing (0), keep
               all|last (all: weights after every step); optimizer adamw|sgd (adamw); sgd reads rate, momentum
               (0), nesterov 0|1 (0) and weight_decay
  tokens       I32 or I64, [batch, sequence], or [steps, batch, sequence] for a batch of its own in every step
  targets      of the same shape; negative: ignored

  weights      the names of transformers. Layers are counted, biases and the untied head are used where the
  file has them.
    GPT-2 (a file with transformer.wte.weight; linear weights are [in, out]):
               transformer.{wte,wpe}.weight,
               transformer.h.N.{ln_1,attn.c_attn,attn.c_proj,ln_2,mlp.c_fc,mlp.c_proj}.{weight,bias},
               transformer.ln_f.{weight,bias}, lm_head.weight
    Llama and all mixtures (linear weights are [out, in]):
               model.embed_tokens.weight, model.embed_positions.weight (learned positions),
               model.layers.N.{input_layernorm,
               self_attn.{q,k,v,o}_proj,post_attention_layernorm,mlp.{gate,up,down}_proj}.{weight,bias} (gelu
               has no gate), model.norm.{weight,bias}, lm_head.weight

FOLDER/<precision>.safetensors, all F32 unless it says otherwise, steps counted from 1:

  logits           [micro_batch, sequence, vocabulary] of the first micro-batch before any update
  losses           [batch, sequence] of every token of the first step, before its update; 0 where ignored
  loss.<step>      F64, rank 0: mean over the valid tokens of the batch, before the step's update
  norm.<step>      F64, rank 0: global norm of the gradients before clipping
  gradient.<name>  of the first step's loss, before clipping, in the shape of the weight
  weight.<step>.<name>  after the step's update

Precisions: f32 and f64 compute everything so. bf16 is what autocast does with fused attention: f32 weights,
residual stream, norms, softmax and loss; products of bf16 operands. bf16_model is model.to(torch.bfloat16),
with f32 masters as Megatron and FSDP keep them: weights and activations are bf16 tensors, every operation is
PyTorch's own for those, the loss is that of float logits, and gradients of micro-batches are added in f32.

What may be compared: tensors as wholes, |a - b| / |b|, with one exception. The bias of the keys (the middle
third of c_attn.bias, k_proj.bias without rotary positions) has a gradient of zero in exact arithmetic, so
what is computed there is rounding alone: hold it against the norm of all gradients. AdamW divides it by its
own size, so it moves that bias by about the rate in a random direction.
"""
import argparse
import json
import math
import os

import numpy
import torch
import torch.nn.functional as F

PRECISIONS = ("f32", "f64", "bf16", "bf16_model")
NUMPY = {
    "F64": "<f8", "F32": "<f4", "F16": "<f2", "I64": "<i8", "I32": "<i4", "I16": "<i2", "U8": "u1",
    "BOOL": "?"
}
NAMES = {"float64": "F64", "float32": "F32", "int64": "I64", "int32": "I32", "uint8": "U8", "bool": "BOOL"}


def read_safetensors(path):
    """(metadata, {name: numpy array}); BF16 becomes f32."""
    with open(path, "rb") as file:
        header = json.loads(file.read(int.from_bytes(file.read(8), "little")))
        data = file.read()
    arrays = {}
    for name, entry in header.items():
        if name == "__metadata__":
            continue
        raw = data[slice(*entry["data_offsets"])]
        if entry["dtype"] == "BF16":
            array = (numpy.frombuffer(raw, "<u2").astype("<u4") << 16).view("<f4")
        else:
            array = numpy.frombuffer(raw, NUMPY[entry["dtype"]])
        arrays[name] = array.reshape(entry["shape"])
    return header.get("__metadata__", {}), arrays


def write_safetensors(path, metadata, arrays):
    arrays = {name: numpy.asarray(array, order="C") for name, array in arrays.items()}
    header, offset = {"__metadata__": metadata}, 0
    order = sorted(arrays, key=lambda name: (-arrays[name].itemsize, name))
    for name in order:
        array = arrays[name]
        header[name] = {
            "dtype": NAMES[array.dtype.name], "shape": list(array.shape),
            "data_offsets": [offset, offset + array.nbytes]
        }
        offset += array.nbytes
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        for name in order:
            file.write(arrays[name].tobytes())


ACTIVATIONS = {
    "gelu": lambda x: F.gelu(x, approximate="tanh"), "gelu_exact": F.gelu, "relu": F.relu, "silu": F.silu
}


def unseen(scores):
    return torch.ones(scores.shape[-2:], dtype=torch.bool).triu(1)


class Decoder:
    """The forward pass, a function of the weights by name."""

    def __init__(self, weights, settings, precision):
        self.weights = weights
        self.gpt2 = "transformer.wte.weight" in weights
        self.heads = int(settings["heads"])
        self.key_value_heads = int(settings.get("key_value_heads", self.heads))
        self.rms = settings.get("norm", "layer") == "rms"
        self.epsilon = float(settings.get("norm_epsilon", 1e-5))
        self.rotary = settings.get("positions", "learned") == "rotary"
        self.rotary_base = float(settings.get("rotary_base", 10000))
        self.activation = settings.get("mlp", "gelu")
        self.exact = torch.float64 if precision == "f64" else torch.float32
        self.operand = torch.bfloat16 if precision.startswith("bf16") else self.exact
        prefix = "transformer.h." if self.gpt2 else "model.layers."
        self.layers = 1 + max(
            int(name[len(prefix):].split(".")[0]) for name in weights if name.startswith(prefix))

    def product(self, x, path):
        weight, bias = self.weights[path + ".weight"].to(self.operand), self.weights.get(path + ".bias")
        if self.gpt2:
            weight = weight.t()
        return F.linear(x.to(self.operand), weight, None if bias is None else bias.to(self.operand))

    def norm(self, x, path):
        gain, offset, x = self.weights[path + ".weight"], self.weights.get(path + ".bias"), x.to(self.exact)
        if not self.rms:
            return F.layer_norm(x, x.shape[-1:], gain, offset, self.epsilon)
        y = x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.epsilon) * gain
        return y if offset is None else y + offset

    def turn(self, x):
        """Pairs (i, i + width/2) by the angle position * base^(-2i/width); x is [batch, heads, sequence,
        width]."""
        width, sequence = x.shape[-1], x.shape[-2]
        speed = self.rotary_base ** (-torch.arange(0, width, 2, dtype=torch.float64) / width)
        angle = torch.outer(torch.arange(sequence, dtype=torch.float64), speed)
        cos, sin = angle.cos().to(self.exact), angle.sin().to(self.exact)
        a, b = x.to(self.exact).split(width // 2, -1)
        return torch.cat((a * cos - b * sin, b * cos + a * sin), -1).to(self.operand)

    def attention(self, x, path):
        batch, sequence, width = x.shape
        if self.gpt2:
            q, k, v = self.product(x, path + "attn.c_attn").split(width, -1)
        else:
            q, k, v = (self.product(x, path + "self_attn." + part + "_proj") for part in "qkv")
        q = q.view(batch, sequence, self.heads, -1).transpose(1, 2)
        k, v = (t.view(batch, sequence, self.key_value_heads, -1).transpose(1, 2) for t in (k, v))
        if self.rotary:
            q, k = self.turn(q), self.turn(k)
        k, v = (t.repeat_interleave(self.heads // self.key_value_heads, 1) for t in (k, v))
        out = self.attend(q, k, v).transpose(1, 2).reshape(batch, sequence, -1)
        return self.product(out, path + ("attn.c_proj" if self.gpt2 else "self_attn.o_proj"))

    def attend(self, q, k, v):
        scores = q.to(self.exact) @ k.to(self.exact).transpose(-1, -2) / math.sqrt(q.shape[-1])
        return scores.masked_fill(unseen(scores), -math.inf).softmax(-1).to(self.operand) @ v

    def mlp(self, x, path):
        path += "mlp."
        if self.activation == "swiglu":
            return self.product(
                F.silu(self.product(x, path + "gate_proj")) * self.product(x, path + "up_proj"),
                path + "down_proj")
        first, last = ("c_fc", "c_proj") if self.gpt2 else ("up_proj", "down_proj")
        return self.product(ACTIVATIONS[self.activation](self.product(x, path + first)), path + last)

    def logits(self, tokens):
        table = "transformer.wte" if self.gpt2 else "model.embed_tokens"
        x = F.embedding(tokens, self.weights[table + ".weight"])
        if not self.rotary:
            positions = self.weights["transformer.wpe.weight" if self.
                                     gpt2 else "model.embed_positions.weight"]
            x = x + positions[: tokens.shape[1]]
        for layer in range(self.layers):
            path = ("transformer.h.%d." if self.gpt2 else "model.layers.%d.") % layer
            first, second = ("ln_1", "ln_2") if self.gpt2 else ("input_layernorm", "post_attention_layernorm")
            x = x + self.attention(self.norm(x, path + first), path)
            x = x + self.mlp(self.norm(x, path + second), path)
        x = self.norm(x, "transformer.ln_f" if self.gpt2 else "model.norm")
        head = self.weights.get("lm_head.weight", self.weights[table + ".weight"])
        return F.linear(x.to(self.operand), head.to(self.operand)).to(self.exact)


class Bf16Decoder(Decoder):
    """model.to(torch.bfloat16): what it rounds, and where, is PyTorch's choice. Of several ways the more
    exact one is taken: the fused norm and attention where this PyTorch has them, rotation in f32."""

    def __init__(self, weights, settings, precision):
        super().__init__(weights, settings, precision)
        self.masters = weights

    def norm(self, x, path):
        gain, offset = self.weights[path + ".weight"], self.weights.get(path + ".bias")
        if not self.rms:
            return F.layer_norm(x, x.shape[-1:], gain, offset, self.epsilon)
        if hasattr(F, "rms_norm"):
            y = F.rms_norm(x, x.shape[-1:], gain, self.epsilon)
        else:  # as Llama was published
            y = (x.float() * torch.rsqrt(x.float().pow(2).mean(-1, keepdim=True) + self.epsilon)).to(
                x.dtype) * gain
        return y if offset is None else y + offset

    def attend(self, q, k, v):
        if hasattr(F, "scaled_dot_product_attention"):
            return F.scaled_dot_product_attention(q, k, v, is_causal=True)
        scores = q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])
        return scores.masked_fill(unseen(scores), -math.inf).softmax(-1) @ v

    def logits(self, tokens):
        self.weights = {name: master.to(torch.bfloat16) for name, master in self.masters.items()}
        return super().logits(tokens)


def run(metadata, arrays, precision):
    """The output's tensors for an input's metadata and tensors."""
    exact = torch.float64 if precision == "f64" else torch.float32
    arrays = {name: torch.from_numpy(numpy.array(array)) for name, array in arrays.items()}
    tokens, targets = arrays.pop("tokens").long(), arrays.pop("targets").long()
    steps = int(metadata.get("steps", 1))
    if tokens.dim() == 2:
        tokens, targets = (t.expand(max(steps, 1), *t.shape) for t in (tokens, targets))
    weights = {name: array.to(exact).requires_grad_() for name, array in arrays.items()}
    model = (Bf16Decoder if precision == "bf16_model" else Decoder)(weights, metadata, precision)

    rates = [float(rate) for rate in metadata.get("rate", "1e-3").split(",")]
    rates = rates * max(steps, 1) if len(rates) == 1 else rates
    matrices, vectors = ([w for w in weights.values() if (w.dim() >= 2) == many] for many in (True, False))
    groups = [{"params": matrices, "weight_decay": float(metadata.get("weight_decay", 0.1))},
              {"params": vectors, "weight_decay": 0.0}]
    groups = [group for group in groups if group["params"]]
    if metadata.get("optimizer", "adamw") == "sgd":
        optimizer = torch.optim.SGD(groups, lr=rates[0], momentum=float(metadata.get("momentum", 0)),
                                    nesterov=metadata.get("nesterov", "0") == "1")
    else:
        optimizer = torch.optim.AdamW(
            groups, lr=rates[0], eps=float(metadata.get("epsilon", 1e-8)),
            betas=(float(metadata.get("beta1", 0.9)), float(metadata.get("beta2", 0.95))))
    clip, smoothing = float(metadata.get("clip", 1)), float(metadata.get("label_smoothing", 0))
    micro_batch = int(metadata.get("micro_batch", tokens.shape[1]))

    results = {}
    for step in range(1, max(steps, 1) + 1):
        optimizer.zero_grad()
        valid, losses = int((targets[step - 1] >= 0).sum()), []
        for x, y in zip(tokens[step - 1].split(micro_batch), targets[step - 1].split(micro_batch)):
            logits = model.logits(x)
            results.setdefault("logits", logits.detach().float().numpy())
            loss = F.cross_entropy(logits.flatten(0, 1),
                                   y.masked_fill(y < 0, -100).flatten(), reduction="none",
                                   label_smoothing=smoothing)
            (loss.sum() / valid).backward()
            losses.append(loss.detach().view(y.shape))
        losses = torch.cat(losses)
        results["loss.%d" % step] = numpy.float64(losses.double().sum() / valid)
        if step == 1:
            results["losses"] = losses.float().numpy()
            results.update(
                {"gradient." + name: weight.grad.float().numpy().copy()
                 for name, weight in weights.items()})
        norm = torch.nn.utils.clip_grad_norm_(list(weights.values()), clip if clip > 0 else math.inf)
        results["norm.%d" % step] = numpy.float64(norm.item())
        if steps == 0:
            break
        for group in optimizer.param_groups:
            group["lr"] = rates[step - 1]
        optimizer.step()
        if metadata.get("keep", "all") == "all" or step == steps:
            results.update({
                "weight.%d.%s" % (step, name): weight.detach().float().numpy().copy()
                for name, weight in weights.items()
            })
    return results


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="+")
    parser.add_argument("--precision", default="f32")
    parser.add_argument("--threads", type=int, default=1)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    for folder in arguments.folder:
        metadata, arrays = read_safetensors(os.path.join(folder, "input.safetensors"))
        for precision in arguments.precision.split(","):
            if precision not in PRECISIONS:
                parser.error("--precision names %s; there are %s" % (precision, ", ".join(PRECISIONS)))
            results = run(metadata, arrays, precision)
            answer = os.path.join(folder, precision + ".safetensors")
            write_safetensors(answer, {"torch": torch.__version__, "precision": precision}, results)


if __name__ == "__main__":
    main()
