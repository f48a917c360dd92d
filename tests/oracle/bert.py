"""BertForMaskedLM in plain PyTorch; its head computes the picked rows alone.

  metadata     heads; norm_epsilon (1e-5); mlp gelu|gelu_exact|relu|silu (gelu), also of the head; padding: the token
               whose row learns nothing as an input
  tokens       [batch, sequence], I32 or I64, all of them of the first type, all of them seen
  picked       [batch, masked]: rows of a sample; negative: none, and its target is negative too
  targets      of the same shape
  weights      bert.embeddings.{word,position,token_type}_embeddings.weight, bert.embeddings.LayerNorm.{weight,bias},
               bert.encoder.layer.N.{attention.self.{query,key,value},attention.output.dense,
               attention.output.LayerNorm,intermediate.dense,output.dense,output.LayerNorm}.{weight,bias},
               cls.predictions.transform.{dense,LayerNorm}.{weight,bias}, cls.predictions.bias. The head's table is
               that of the words.
"""
from network import Network


class Bert(Network):
    FIELDS = ("tokens", "picked", "targets")

    def __init__(self, weights, settings, precision):
        super().__init__(weights, settings, precision)
        self.padding = int(settings["padding"])
        self.layers = self.count("bert.encoder.layer.")

    def layer(self, x, path):
        q, k, v = (self.split(self.product(x, path + "attention.self." + part), self.heads)
                   for part in ("query", "key", "value"))
        x = self.norm(x + self.product(self.attend(q, k, v), path + "attention.output.dense"),
                      path + "attention.output.LayerNorm")
        inner = self.activation(self.product(x, path + "intermediate.dense"))
        return self.norm(x + self.product(inner, path + "output.dense"), path + "output.LayerNorm")

    def logits(self, tokens, picked):
        path = "bert.embeddings."
        x = self.embedding(tokens, path + "word_embeddings", self.padding)
        x = x + self.weights[path + "token_type_embeddings.weight"][0]
        x = x + self.weights[path + "position_embeddings.weight"][:tokens.shape[1]]
        x = self.norm(x, path + "LayerNorm")
        for layer in range(self.layers):
            x = self.layer(x, "bert.encoder.layer.%d." % layer)
        x = x.gather(1, picked.clamp(min=0).unsqueeze(-1).expand(-1, -1, x.shape[-1]))
        path = "cls.predictions."
        x = self.norm(self.activation(self.product(x, path + "transform.dense")), path + "transform.LayerNorm")
        return self.logits_of(x, self.weights["bert.embeddings.word_embeddings.weight"], self.weights[path + "bias"])
