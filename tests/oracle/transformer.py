"""An encoder-decoder in plain PyTorch: MarianMTModel (post-norm), M2M100ForConditionalGeneration (pre-norm).

  metadata     heads; norm_epsilon (1e-5); mlp gelu|gelu_exact|relu|silu (gelu); order post_norm|pre_norm; positions
               sinusoids (of 10000^(-2i/width), as Marian) | closed_sinusoids (of 10000^(-2i/(width - 2)), as M2M100)
               | learned; first_position (0): of a sequence's first token; scaled 0|1 (1): embeddings are multiplied
               by the root of the width; padding: the token whose row learns nothing as an input
  source           [batch, source_sequence], I32 or I64
  source_lengths   [batch, 1]: how many of its tokens are seen; a query that sees none gets zeros from attention
  tokens, targets  [batch, target_sequence]
  weights      model.shared.weight, or model.{encoder,decoder}.embed_tokens.weight; lm_head.weight where the head has
               a table of its own; model.{encoder,decoder}.embed_positions.weight (learned positions),
               model.{encoder,decoder}.layers.N.{self_attn.{q,k,v,out}_proj,self_attn_layer_norm,fc1,fc2,
               final_layer_norm}.{weight,bias}, model.decoder.layers.N.{encoder_attn.{q,k,v,out}_proj,
               encoder_attn_layer_norm}.{weight,bias}, model.{encoder,decoder}.layer_norm.{weight,bias} (pre-norm)
"""
import math

import torch

from network import Network


class EncoderDecoder(Network):
    FIELDS = ("source", "source_lengths", "tokens", "targets")

    def __init__(self, weights, settings, precision):
        super().__init__(weights, settings, precision)
        self.pre_norm = settings["order"] == "pre_norm"
        self.positions = settings["positions"]
        self.first_position = int(settings.get("first_position", 0))
        self.scaled = settings.get("scaled", "1") == "1"
        self.padding = int(settings["padding"])
        self.layers = {side: self.count("model.%s.layers." % side) for side in ("encoder", "decoder")}

    def table(self, side):
        return "model.shared" if "model.shared.weight" in self.weights else "model.%s.embed_tokens" % side

    def places(self, side, rows, width):
        """What tells of the places of so many tokens."""
        if self.positions == "learned":
            return self.weights["model.%s.embed_positions.weight" % side][self.first_position:self.first_position + rows]
        last = width if self.positions == "sinusoids" else width - 2
        speed = 10000.0 ** (-torch.arange(0, width, 2, dtype=torch.float64) / last)
        angle = torch.outer(torch.arange(rows, dtype=torch.float64) + self.first_position, speed)
        return torch.cat((angle.sin(), angle.cos()), -1).to(self.exact)

    def embedded(self, ids, side):
        x = self.embedding(ids, self.table(side), self.padding)
        if self.scaled:
            x = x * math.sqrt(x.shape[-1])
        places = self.places(side, ids.shape[1], x.shape[-1])
        return x + places.to(x.dtype)

    def around(self, x, branch, path):
        """x plus a branch of it, the norm before the branch or behind the sum."""
        if self.pre_norm:
            return x + branch(self.norm(x, path))
        return self.norm(x + branch(x), path)

    def attention(self, x, keys, path, **sight):
        q, k, v = (self.split(self.product(t, path + part + "_proj"), self.heads)
                   for t, part in ((x, "q"), (keys, "k"), (keys, "v")))
        return self.product(self.attend(q, k, v, **sight), path + "out_proj")

    def mlp(self, x, path):
        return self.product(self.activation(self.product(x, path + "fc1")), path + "fc2")

    def encoder(self, source, seen):
        x = self.embedded(source, "encoder")
        for layer in range(self.layers["encoder"]):
            path = "model.encoder.layers.%d." % layer
            x = self.around(x, lambda y: self.attention(y, y, path + "self_attn.", seen=seen),
                            path + "self_attn_layer_norm")
            x = self.around(x, lambda y: self.mlp(y, path), path + "final_layer_norm")
        return self.norm(x, "model.encoder.layer_norm") if self.pre_norm else x

    def decoder(self, tokens, memory, seen):
        x = self.embedded(tokens, "decoder")
        for layer in range(self.layers["decoder"]):
            path = "model.decoder.layers.%d." % layer
            x = self.around(x, lambda y: self.attention(y, y, path + "self_attn.", causal=True),
                            path + "self_attn_layer_norm")
            x = self.around(x, lambda y: self.attention(y, memory, path + "encoder_attn.", seen=seen),
                            path + "encoder_attn_layer_norm")
            x = self.around(x, lambda y: self.mlp(y, path), path + "final_layer_norm")
        return self.norm(x, "model.decoder.layer_norm") if self.pre_norm else x

    def logits(self, source, source_lengths, tokens):
        seen = (torch.arange(source.shape[1]) < source_lengths.view(-1, 1)).view(-1, 1, 1, source.shape[1])
        x = self.decoder(tokens, self.encoder(source, seen), seen)
        table = self.weights.get("lm_head.weight")
        return self.logits_of(x, self.weights[self.table("decoder") + ".weight"] if table is None else table)
