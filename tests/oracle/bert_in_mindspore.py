#!/usr/bin/env python3
"""A small BERT of MindSpore's own layers with weights of ours: what its embeddings, its layers and its head make of a batch.

    bert_in_mindspore.py DIRECTORY MODEL ANSWER

DIRECTORY has model.safetensors with the names of mindspore.nn (export.names: mindspore); MODEL has config.json and
expected.safetensors with tokens and the rows that are picked; ANSWER gets the logits. The weights are read by load_checkpoint, once as they
are and once from what safetensors_to_ckpt makes of them. Exits 1 where a parameter is missing or is not used.
"""
import json
import os
import sys
import tempfile

import mindspore
import numpy
from mindspore import Parameter, Tensor, nn, ops

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from safetensors_file import read_safetensors, write_safetensors  # noqa: E402


class Group(nn.Cell):
    """Layers by their names."""

    def __init__(cell, **layers):  # one of the layers is named self
        super(Group, cell).__init__()
        for name, layer in layers.items():
            setattr(cell, name, layer)


def attention_of(width, norm):
    return Group(self=Group(**{name: nn.Dense(width, width) for name in ("query", "key", "value")}),
                 output=Group(dense=nn.Dense(width, width), LayerNorm=norm()))


class Bert(nn.Cell):
    def __init__(self, config):
        super().__init__()
        width, inner = config["hidden_size"], config["intermediate_size"]
        self.heads = config["num_attention_heads"]

        def norm():
            return nn.LayerNorm((width, ), epsilon=config["layer_norm_eps"])

        layers = [
            Group(attention=attention_of(width, norm), intermediate=Group(dense=nn.Dense(width, inner)),
                  output=Group(dense=nn.Dense(inner, width), LayerNorm=norm())) for _ in range(config["num_hidden_layers"])
        ]
        self.bert = Group(
            embeddings=Group(word_embeddings=nn.Embedding(config["vocab_size"], width),
                             position_embeddings=nn.Embedding(config["max_position_embeddings"], width),
                             token_type_embeddings=nn.Embedding(config["type_vocab_size"], width), LayerNorm=norm()),
            encoder=Group(layer=nn.CellList(layers)))
        self.cls = Group(predictions=Group(transform=Group(dense=nn.Dense(width, width), LayerNorm=norm())))
        self.cls.predictions.bias = Parameter(Tensor(numpy.zeros(config["vocab_size"], numpy.float32)), name="cls.predictions.bias")
        self.gelu = nn.GELU(approximate=False)

    def attend(self, layer, x):
        samples, rows, width = x.shape
        q, k, v = (dense(x).reshape(samples, rows, self.heads, width // self.heads).transpose(0, 2, 1, 3)
                   for dense in (getattr(layer, "self").query, getattr(layer, "self").key, getattr(layer, "self").value))
        weights = ops.softmax(ops.matmul(q, k.transpose(0, 1, 3, 2)) / (width // self.heads)**0.5, -1)
        mixed = ops.matmul(weights, v).transpose(0, 2, 1, 3).reshape(samples, rows, width)
        return layer.output.LayerNorm(layer.output.dense(mixed) + x)

    def construct(self, tokens, picked):
        embeddings = self.bert.embeddings
        x = embeddings.word_embeddings(tokens) + embeddings.position_embeddings(
            ops.arange(tokens.shape[1])) + embeddings.token_type_embeddings(ops.zeros_like(tokens))
        x = embeddings.LayerNorm(x)
        for layer in self.bert.encoder.layer:
            x = self.attend(layer.attention, x)
            x = layer.output.LayerNorm(layer.output.dense(self.gelu(layer.intermediate.dense(x))) + x)
        head = self.cls.predictions
        x = ops.gather_elements(x, 1, picked.expand_dims(-1).broadcast_to(picked.shape + (x.shape[-1], )))
        x = head.transform.LayerNorm(self.gelu(head.transform.dense(x)))
        return ops.matmul(x, embeddings.word_embeddings.embedding_table.T) + head.bias


def logits_of(config, weights, fields):
    network = Bert(config)
    network.set_train(False)
    missing, unused = mindspore.load_param_into_net(network, weights, strict_load=True)
    if missing or unused:
        sys.exit("tensors that do not fit: %s" % ", ".join([*missing, *unused]))
    return network(*(Tensor(fields[name].astype(numpy.int32)) for name in ("tokens", "picked"))).asnumpy()


def main():
    directory, model, answer = sys.argv[1:]
    mindspore.set_device("CPU")
    with open(os.path.join(model, "config.json")) as file:
        config = json.load(file)
    _, fields = read_safetensors(os.path.join(model, "expected.safetensors"))
    path = os.path.join(directory, "model.safetensors")
    logits = logits_of(config, mindspore.load_checkpoint(path, format="safetensors"), fields)
    with tempfile.TemporaryDirectory() as folder:
        mindspore.safetensors_to_ckpt(path, folder)
        names = [os.path.join(place, name) for place, _, names in os.walk(folder) for name in names if name.endswith(".ckpt")]
        again = logits_of(config, mindspore.load_checkpoint(names[0]), fields)
    if not numpy.array_equal(logits, again):
        sys.exit("safetensors_to_ckpt has made other weights")
    write_safetensors(answer, {}, {"logits": logits})


if __name__ == "__main__":
    main()
