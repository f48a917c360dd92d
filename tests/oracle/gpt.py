"""A decoder, GPT2LMHeadModel or LlamaForCausalLM and mixtures of them, in plain PyTorch.

  metadata     heads; key_value_heads (heads); norm layer|rms (layer); norm_epsilon (1e-5); positions
               learned|rotary (learned); rotary_base (10000); mlp gelu|gelu_exact|relu|silu|swiglu (gelu)
  tokens       [batch, sequence], I32 or I64
  targets      of the same shape
  weights      the names of transformers. Layers are counted, biases and the untied head are used where the file has
               them.
    GPT-2 (a file with transformer.wte.weight; linear weights are [in, out]):
               transformer.{wte,wpe}.weight,
               transformer.h.N.{ln_1,attn.c_attn,attn.c_proj,ln_2,mlp.c_fc,mlp.c_proj}.{weight,bias},
               transformer.ln_f.{weight,bias}, lm_head.weight
    Llama and all mixtures (linear weights are [out, in]):
               model.embed_tokens.weight, model.embed_positions.weight (learned positions),
               model.layers.N.{input_layernorm,self_attn.{q,k,v,o}_proj,post_attention_layernorm,
               mlp.{gate,up,down}_proj}.{weight,bias} (gelu has no gate), model.norm.{weight,bias}, lm_head.weight
"""
import torch
import torch.nn.functional as F

from network import Network


class Decoder(Network):
    FIELDS = ("tokens", "targets")

    def __init__(self, weights, settings, precision):
        super().__init__(weights, settings, precision)
        self.gpt2 = "transformer.wte.weight" in weights
        self.key_value_heads = int(settings.get("key_value_heads", self.heads))
        self.rotary = settings.get("positions", "learned") == "rotary"
        self.rotary_base = float(settings.get("rotary_base", 10000))
        self.prefix = "transformer.h." if self.gpt2 else "model.layers."
        self.layers = self.count(self.prefix)

    def product(self, x, path):
        weight, bias = self.weights[path + ".weight"], self.weights.get(path + ".bias")
        return self.times(x, weight.t() if self.gpt2 else weight, bias)

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
        if self.gpt2:
            q, k, v = self.product(x, path + "attn.c_attn").split(x.shape[-1], -1)
        else:
            q, k, v = (self.product(x, path + "self_attn." + part + "_proj") for part in "qkv")
        q, k, v = self.split(q, self.heads), self.split(k, self.key_value_heads), self.split(v, self.key_value_heads)
        if self.rotary:
            q, k = self.turn(q), self.turn(k)
        k, v = (t.repeat_interleave(self.heads // self.key_value_heads, 1) for t in (k, v))
        out = self.attend(q, k, v, causal=True)
        return self.product(out, path + ("attn.c_proj" if self.gpt2 else "self_attn.o_proj"))

    def mlp(self, x, path):
        path += "mlp."
        if self.settings.get("mlp") == "swiglu":
            gate, up = self.product(x, path + "gate_proj"), self.product(x, path + "up_proj")
            return self.product(F.silu(gate) * up, path + "down_proj")
        first, last = ("c_fc", "c_proj") if self.gpt2 else ("up_proj", "down_proj")
        return self.product(self.activation(self.product(x, path + first)), path + last)

    def logits(self, tokens):
        table = "transformer.wte" if self.gpt2 else "model.embed_tokens"
        x = self.embedding(tokens, table)
        if not self.rotary:
            positions = "transformer.wpe.weight" if self.gpt2 else "model.embed_positions.weight"
            x = x + self.weights[positions][:tokens.shape[1]]
        first, second = ("ln_1", "ln_2") if self.gpt2 else ("input_layernorm", "post_attention_layernorm")
        for layer in range(self.layers):
            path = "%s%d." % (self.prefix, layer)
            x = x + self.attention(self.norm(x, path + first), path)
            x = x + self.mlp(self.norm(x, path + second), path)
        x = self.norm(x, "transformer.ln_f" if self.gpt2 else "model.norm")
        return self.logits_of(x, self.weights.get("lm_head.weight", self.weights[table + ".weight"]))
