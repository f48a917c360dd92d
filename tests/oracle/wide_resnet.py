"""A wide residual network, pre-activation (Zagoruyko and Komodakis, 2016), in plain PyTorch.

  metadata     norm_epsilon (1e-5); norm_momentum (0.1); channels; mean, deviation: of each channel, whose bytes are
               numbers from 0 to 1, with commas, or one for all
  picture      [batch, channels * height, width], U8: channel by channel
  targets      [batch, 1]: the class
  weights      conv1.weight; blockG.layer.N.{bn1,bn2,conv1,conv2,convShortcut}, the last only where extents change;
               bn1; fc. A bn has weight, bias, running_mean and running_var.

Each micro-batch is normed by what it is itself, and PyTorch moves the running statistics that the step began with:
the step ends with the mean of what its micro-batches made of them.
"""
import torch
import torch.nn.functional as F

from network import Network


class WideResnet(Network):
    FIELDS = ("picture", "targets")
    STATISTICS = ("running_mean", "running_var")

    def __init__(self, weights, settings, precision):
        super().__init__(weights, settings, precision)
        self.channels = int(settings["channels"])
        self.momentum = float(settings.get("norm_momentum", 0.1))
        self.mean, self.deviation = (torch.tensor([float(number) for number in settings[name].split(",")],
                                                  dtype=self.exact).view(-1, 1, 1) for name in ("mean", "deviation"))
        self.moved = {}

    def convolution(self, x, path, stride=1):
        kernels = self.weights[path + ".weight"]
        return F.conv2d(x.to(self.operand), kernels.to(self.operand), stride=stride, padding=kernels.shape[-1] // 2)

    def normed(self, x, path):
        x = x if self.whole_bf16 else x.to(self.exact)
        running = [self.weights[path + "." + name].detach().clone() for name in self.STATISTICS]
        y = F.batch_norm(x, *running, self.weights[path + ".weight"], self.weights[path + ".bias"], training=True,
                         momentum=self.momentum, eps=self.epsilon)
        for name, statistic in zip(self.STATISTICS, running):
            self.moved.setdefault(path + "." + name, []).append(statistic)
        return y

    def activated(self, x, path):
        return F.relu(self.normed(x, path))

    def end_step(self):
        for name, statistics in self.moved.items():
            self.masters[name].data = torch.stack([s.to(self.exact) for s in statistics]).mean(0)
        self.moved = {}

    def block(self, x, path, stride):
        a = self.activated(x, path + "bn1")
        stream = self.convolution(a, path + "convShortcut", stride) if path + "convShortcut.weight" in self.weights else x
        a = self.activated(self.convolution(a, path + "conv1", stride), path + "bn2")
        return stream + self.convolution(a, path + "conv2")

    def numbers(self, picture):
        samples, rows, columns = picture.shape
        return (picture.view(samples, self.channels, rows // self.channels, columns).to(self.exact) / 255
                - self.mean) / self.deviation

    def logits(self, picture):
        x = self.convolution(self.numbers(picture), "conv1")
        for group in (1, 2, 3):
            for layer in range(self.count("block%d.layer." % group)):
                x = self.block(x, "block%d.layer.%d." % (group, layer), 2 if group > 1 and layer == 0 else 1)
        x = self.activated(x, "bn1").mean((2, 3)).unsqueeze(1)
        return self.logits_of(x, self.weights["fc.weight"], self.weights["fc.bias"])
