"""A network of a space of pictures, in plain PyTorch: a stem, blocks, and a classifier of the mean over what is left.

  metadata     norm_epsilon; norm_momentum; channels; mean, deviation: as wide_resnet.py; blocks: of each block, with
               commas, where its weights stand, its word, and 2 where it halves the picture, else 1: blocks.0.3:conv-3:2
  picture      [batch, channels * height, width], U8: channel by channel
  targets      [batch, 1]: the class
  weights      stem.{conv,norm}; blocks.B.N.{conv,norm}, conv of separable and dilated words as conv.depthwise and
               conv.pointwise; head.{final_norm,classifier}

A word that convolves is x + norm(conv(relu(x))), without x where it halves; pools and identity are followed by
norm(conv(.)) there, each pixel by itself.
"""
import torch.nn.functional as F

from wide_resnet import WideResnet


class PictureSpace(WideResnet):

    def block(self, x, path, word, stride):
        name, _, side = word.partition("-")
        side = int(side or 1)
        if name in ("max", "average"):
            if name == "max":
                x = F.max_pool2d(x, side, stride, side // 2)
            else:
                x = F.avg_pool2d(x, side, stride, side // 2, count_include_pad=False)
            return x if stride == 1 else self.normed(self.convolution(x, path + "conv"), path + "norm")
        if name == "identity":
            return x if stride == 1 else self.normed(self.convolution(x, path + "conv", stride), path + "norm")
        a = F.relu(x)
        if name == "conv":
            a = self.convolution(a, path + "conv", stride)
        else:
            dilation = 2 if name == "dilated" else 1
            taps = self.weights[path + "conv.depthwise.weight"]
            a = F.conv2d(a.to(self.operand), taps.to(self.operand), stride=stride, padding=dilation * (side // 2),
                         dilation=dilation, groups=taps.shape[0])
            a = self.convolution(a, path + "conv.pointwise")
        a = self.normed(a, path + "norm")
        return a if stride > 1 else x + a

    def logits(self, picture):
        x = self.normed(self.convolution(self.numbers(picture), "stem.conv"), "stem.norm")
        for block in self.settings["blocks"].split(","):
            path, word, stride = block.split(":")
            x = self.block(x, path + ".", word, int(stride))
        x = self.activated(x, "head.final_norm").mean((2, 3)).unsqueeze(1)
        return self.logits_of(x, self.weights["head.classifier.weight"], self.weights["head.classifier.bias"])
