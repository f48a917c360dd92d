#!/usr/bin/env python3
"""Makes small random models of transformers, each in a directory as save_pretrained leaves it, and beside its weights
expected.safetensors: fields of a batch, and what the model makes of them: logits, the loss of every target, their mean.

    golden_models.py FOLDER [--dtype float32|bfloat16] [--part 1MB] [--times 16] [--bare] [NAME...]

--times: widths are so many times larger; --bare: names have no base prefix, as in files of a model without a head.

tests/golden/transformers holds what it makes of all of them in float32; `make test-peers` makes others.
"""
import argparse
import json
import os
import sys

import torch
import transformers
from safetensors.torch import load_file, save_file

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import peers  # noqa: E402
from training import cross_entropy  # noqa: E402

VOCABULARY, BATCH, ROWS, SOURCE_ROWS = 61, 4, 12, 8
ROTARY = {
    "vocab_size": VOCABULARY, "hidden_size": 16, "intermediate_size": 24, "num_hidden_layers": 2, "num_attention_heads": 4,
    "num_key_value_heads": 4, "max_position_embeddings": 32
}
LLAMA3 = {
    "rope_type": "llama3", "rope_theta": 500.0, "factor": 4.0, "low_freq_factor": 1.0, "high_freq_factor": 3.0,
    "original_max_position_embeddings": 8
}
SIDES = {
    "vocab_size": VOCABULARY, "d_model": 16, "encoder_layers": 2, "decoder_layers": 1, "encoder_attention_heads": 4,
    "decoder_attention_heads": 4, "encoder_ffn_dim": 24, "decoder_ffn_dim": 24, "max_position_embeddings": 32,
    "pad_token_id": 1, "bos_token_id": 0, "eos_token_id": 2, "decoder_start_token_id": 2
}
MODELS = {
    "gpt2": ("GPT2LMHeadModel", {"vocab_size": VOCABULARY, "n_positions": 32, "n_embd": 16, "n_layer": 2, "n_head": 4}),
    "llama": ("LlamaForCausalLM", dict(ROTARY, head_dim=8, rope_parameters=LLAMA3)),
    "llama_with_biases": ("LlamaForCausalLM", dict(ROTARY, attention_bias=True, mlp_bias=True, tie_word_embeddings=True)),
    "mistral": ("MistralForCausalLM", dict(ROTARY, sliding_window=None, head_dim=4)),
    "qwen2": ("Qwen2ForCausalLM", dict(ROTARY, rms_norm_eps=1e-5)),
    "qwen3": ("Qwen3ForCausalLM", dict(ROTARY, head_dim=6, num_key_value_heads=4)),
    "bert": ("BertForMaskedLM", {
        "vocab_size": VOCABULARY, "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 4,
        "intermediate_size": 24, "max_position_embeddings": 32
    }),
    "bert_for_pretraining": ("BertForPreTraining", {
        "vocab_size": VOCABULARY, "hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 4,
        "intermediate_size": 24, "max_position_embeddings": 32
    }),
    "marian": ("MarianMTModel", dict(SIDES, activation_function="swish", scale_embedding=True, decoder_vocab_size=VOCABULARY)),
    "m2m100": ("M2M100ForConditionalGeneration", SIDES),
    "vit": ("ViTForImageClassification", {
        "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 24, "image_size": [8, 12],
        "patch_size": 4, "num_channels": 3, "num_labels": 7
    }),
}


def made(architecture, settings):
    """Norms that are not ones, biases that are not zeros, and constants too: a forgotten one shows."""
    torch.manual_seed(1)
    model_class = getattr(transformers, architecture)
    settings = dict(settings)
    if architecture in ("GPT2LMHeadModel", "LlamaForCausalLM", "MistralForCausalLM", "Qwen2ForCausalLM", "Qwen3ForCausalLM"):
        settings.update(bos_token_id=None, eos_token_id=None)
    model = model_class(model_class.config_class(**settings)).eval()
    with torch.no_grad():
        for weight in model.parameters():
            if weight.requires_grad:
                weight.add_(0.1 * torch.randn_like(weight))
        if hasattr(model, "final_logits_bias"):
            model.final_logits_bias.add_(torch.randn_like(model.final_logits_bias))
    return model


def ids(*extents):
    return torch.randint(3, VOCABULARY - 1, (BATCH, ) + extents, dtype=torch.int32)


def batch_for(architecture):
    """Fields of a batch, and what peers.py needs to know of the model."""
    torch.manual_seed(2)
    if architecture.startswith("Bert"):
        picked = torch.stack([torch.randperm(ROWS)[:3].sort().values for _ in range(BATCH)]).int()
        return {"tokens": ids(ROWS), "picked": picked, "targets": ids(3)}, {"kind": "bert"}
    if architecture.startswith(("Marian", "M2M100")):
        lengths = torch.tensor([8, 3, 5, 8], dtype=torch.int32).unsqueeze(-1)
        source, tokens = ids(SOURCE_ROWS), ids(ROWS)
        source.masked_fill_(torch.arange(SOURCE_ROWS) >= lengths, 1)
        tokens[:, 0] = 2
        return {"source": source, "source_lengths": lengths, "tokens": tokens, "targets": ids(ROWS)}, {"kind": "transformer"}
    if architecture.startswith("ViT"):
        return {
            "picture": torch.randint(0, 256, (BATCH, 24, 12), dtype=torch.uint8),
            "targets": torch.randint(0, 7, (BATCH, 1), dtype=torch.int32)
        }, {"kind": "vit", "channels": "3", "mean": "0.5", "deviation": "0.5"}
    return {"tokens": ids(ROWS), "targets": ids(ROWS)}, {"kind": "gpt"}


class First(torch.nn.Module):
    """A model with several heads as one with the first alone."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, tokens):
        answer = self.model(tokens)
        answer.logits = answer.prediction_logits
        return answer


def losses_of(model, architecture):
    fields, settings = batch_for(architecture)
    with torch.no_grad():
        seen = First(model) if architecture == "BertForPreTraining" else model
        logits = peers.logits_of(seen, settings, fields)
        losses = cross_entropy(logits.double(), fields["targets"].long(), 0)
    return dict(fields, logits=logits.float(), losses=losses.double(), loss=losses.double().mean())


WIDTHS = ("n_embd", "hidden_size", "intermediate_size", "d_model", "encoder_ffn_dim", "decoder_ffn_dim", "head_dim")


def wider(settings, times):
    return {name: value * times if name in WIDTHS else value for name, value in settings.items()}


def take_prefix_away(folder, prefix):
    """Of all names in the files of a directory and in its index."""
    def bare(name):
        return name[len(prefix):] if name.startswith(prefix) else name

    for file in sorted(os.listdir(folder)):
        path = os.path.join(folder, file)
        if file.endswith(".safetensors"):
            save_file({bare(name): tensor for name, tensor in load_file(path).items()}, path, {"format": "pt"})
        elif file.endswith(".index.json"):
            with open(path) as text:
                index = json.load(text)
            index["weight_map"] = {bare(name): part for name, part in index["weight_map"].items()}
            with open(path, "w") as text:
                json.dump(index, text)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder")
    parser.add_argument("names", nargs="*")
    parser.add_argument("--dtype", default="float32")
    parser.add_argument("--part", default="5GB")
    parser.add_argument("--times", type=int, default=1)
    parser.add_argument("--bare", action="store_true")
    asked = parser.parse_args()
    torch.set_num_threads(1)
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    for name in asked.names or MODELS:
        architecture, settings = MODELS[name]
        folder = os.path.join(asked.folder, name)
        model = made(architecture, wider(settings, asked.times)).to(getattr(torch, asked.dtype))
        model.save_pretrained(folder, max_shard_size=asked.part)
        # What is no parameter, sinusoids above all, is not rounded when the file is read.
        model = type(model).from_pretrained(folder, dtype=torch.float32).eval()
        expected = losses_of(model, architecture)
        if asked.bare:
            take_prefix_away(folder, model.base_model_prefix + ".")
        save_file({key: value.contiguous() for key, value in expected.items()}, os.path.join(folder, "expected.safetensors"))
        generation = os.path.join(folder, "generation_config.json")
        if os.path.exists(generation):
            os.remove(generation)


if __name__ == "__main__":
    main()
