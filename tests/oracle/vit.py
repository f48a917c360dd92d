"""ViTForImageClassification in plain PyTorch.

  metadata     heads; norm_epsilon (1e-5); mlp gelu|gelu_exact|relu|silu (gelu); channels; mean, deviation: of
               each channel, whose bytes are numbers from 0 to 1, with commas, or one for all
  picture      [batch, channels * height, width], U8: channel by channel
  targets      [batch, 1]: the class
  weights      vit.embeddings.cls_token [1, 1, width], vit.embeddings.position_embeddings [1, patches + 1, width],
               vit.embeddings.patch_embeddings.projection.{weight,bias} (the weight [width, channels, side, side]),
               vit.encoder.layer.N.{layernorm_before,attention.attention.{query,key,value},attention.output.dense,
               layernorm_after,intermediate.dense,output.dense}.{weight,bias}, vit.layernorm.{weight,bias},
               classifier.{weight,bias}
"""
import torch
import torch.nn.functional as F

from network import Network


class VisionTransformer(Network):
    FIELDS = ("picture", "targets")

    def __init__(self, weights, settings, precision):
        super().__init__(weights, settings, precision)
        self.channels = int(settings["channels"])
        self.mean, self.deviation = (torch.tensor([float(number) for number in settings[name].split(",")],
                                                  dtype=self.exact).view(-1, 1, 1) for name in ("mean", "deviation"))
        self.layers = self.count("vit.encoder.layer.")

    def embedded(self, picture):
        samples, rows, columns = picture.shape
        numbers = (picture.view(samples, self.channels, rows // self.channels, columns).to(self.exact) / 255
                   - self.mean) / self.deviation
        path = "vit.embeddings."
        kernels = self.weights[path + "patch_embeddings.projection.weight"]
        # A patch's numbers in the order of a kernel's: by channel, row and column.
        patches = F.unfold(numbers, kernels.shape[-1], stride=kernels.shape[-1]).transpose(1, 2)
        x = self.times(patches, kernels.flatten(1), self.weights[path + "patch_embeddings.projection.bias"])
        token = self.weights[path + "cls_token"].expand(samples, -1, -1)
        return torch.cat((token, x.to(token.dtype)), 1) + self.weights[path + "position_embeddings"]

    def layer(self, x, path):
        y = self.norm(x, path + "layernorm_before")
        q, k, v = (self.split(self.product(y, path + "attention.attention." + part), self.heads)
                   for part in ("query", "key", "value"))
        x = x + self.product(self.attend(q, k, v), path + "attention.output.dense")
        inner = self.activation(self.product(self.norm(x, path + "layernorm_after"), path + "intermediate.dense"))
        return x + self.product(inner, path + "output.dense")

    def logits(self, picture):
        x = self.embedded(picture)
        for layer in range(self.layers):
            x = self.layer(x, "vit.encoder.layer.%d." % layer)
        return self.logits_of(self.norm(x, "vit.layernorm")[:, :1], self.weights["classifier.weight"],
                              self.weights["classifier.bias"])
