#!/usr/bin/env python3
"""Checks the models of this folder against those of transformers: logits, losses, gradients, three AdamW steps, and
how far autocast and the model in bf16 are from f32.

    check_against_transformers.py        with an interpreter that imports torch, transformers and safetensors

Also checks the reader and the writer of safetensors_file.py against the package `safetensors`. Prints the largest
differences; exits 1 if one is too large.
"""
import os
import sys
import tempfile

import torch
import transformers
from safetensors.torch import load_file, save_file

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import oracle  # noqa: E402
import peers  # noqa: E402
from safetensors_file import read_safetensors, write_safetensors  # noqa: E402
from training import cross_entropy, make_optimizer  # noqa: E402

STEPS, BATCH, MICRO_BATCH, SMOOTHING = 3, 8, 4, 0.1
# Adam divides a gradient by its own size, so noise of a gradient near zero moves a weight by as much as the
# rate.
LIMITS = {"logits": 3e-6, "loss": 1e-6, "losses": 2e-6, "norm": 1e-6, "gradient": 1e-6, "weight": 1e-4}
VOCABULARY = 101
TRAINING = {
    "batches": "each", "steps": str(STEPS), "rate": "1e-3,7e-4,3e-4", "micro_batch": str(MICRO_BATCH), "clip": "1.0",
    "label_smoothing": str(SMOOTHING)
}
NO_DROPOUT = {
    "hidden_dropout_prob": 0, "attention_probs_dropout_prob": 0, "resid_pdrop": 0, "embd_pdrop": 0, "attn_pdrop": 0,
    "dropout": 0, "attention_dropout": 0, "activation_dropout": 0, "encoder_layerdrop": 0, "decoder_layerdrop": 0
}


def made(architecture, **settings):
    """A model of transformers. Norms that are not ones and biases that are not zeros: a forgotten one shows."""
    torch.manual_seed(1)
    model_class = getattr(transformers, architecture)
    known = model_class.config_class().to_dict()
    config = model_class.config_class(**{name: 0 for name in NO_DROPOUT if name in known}, **settings)
    model = model_class(config).eval()
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if weight.requires_grad:
                weight.add_(0.05 * torch.randn_like(weight))
    return model


def ids(*extents):
    """Of tokens that are no padding."""
    return torch.randint(2, VOCABULARY, (STEPS, BATCH) + extents, dtype=torch.int32)


def gpt(model, **settings):
    targets = ids(17)
    targets[:, 1, 3:9] = -1
    return model, dict(settings, kind="gpt"), {"tokens": ids(17), "targets": targets}


def gpt2(tied):
    model = made("GPT2LMHeadModel", vocab_size=VOCABULARY, n_positions=24, n_embd=48, n_layer=3, n_head=4,
                 tie_word_embeddings=tied, bos_token_id=0, eos_token_id=0)
    return gpt(model, heads="4", norm="layer", norm_epsilon="1e-5", positions="learned", mlp="gelu")


def llama(tied, bias):
    model = made("LlamaForCausalLM", vocab_size=VOCABULARY, max_position_embeddings=64, hidden_size=48,
                 intermediate_size=112, num_hidden_layers=3, num_attention_heads=6, num_key_value_heads=2,
                 rms_norm_eps=1e-6, tie_word_embeddings=tied, attention_bias=bias, mlp_bias=bias)
    return gpt(model, heads="6", key_value_heads="2", norm="rms", norm_epsilon="1e-6", positions="rotary", mlp="swiglu")


def bert():
    model = made("BertForMaskedLM", vocab_size=VOCABULARY, hidden_size=48, num_hidden_layers=3, num_attention_heads=4,
                 intermediate_size=112, max_position_embeddings=24, pad_token_id=0)
    tokens, targets = ids(17), ids(5)
    tokens[:, :, 11] = 0
    picked = torch.randint(0, 3, (STEPS, BATCH, 5), dtype=torch.int32) + 3 * torch.arange(5, dtype=torch.int32)
    picked[:, ::3, 3:] = targets[:, ::3, 3:] = -1
    return model, {"kind": "bert", "heads": "4", "norm_epsilon": "1e-12", "mlp": "gelu_exact", "padding": "0"}, {
        "tokens": tokens, "picked": picked, "targets": targets
    }


def pairs(model, start, **settings):
    """Sources and targets of different lengths, some sources empty."""
    lengths = torch.tensor([9, 1, 0, 5, 9, 8, 3, 0], dtype=torch.int32).expand(STEPS, BATCH).unsqueeze(-1).contiguous()
    source, tokens, targets = ids(9), ids(13), ids(13)
    source.masked_fill_(torch.arange(9) >= lengths, 1)
    tokens[:, 1::2, 11:], targets[:, 1::2, 11:] = 1, -1
    tokens[:, :, 0] = start
    targets[:, 4, 2:5] = -1
    return model, dict(settings, kind="transformer", heads="4", norm_epsilon="1e-5", padding="1"), {
        "source": source, "source_lengths": lengths, "tokens": tokens, "targets": targets
    }


SIDES = {
    "vocab_size": VOCABULARY, "d_model": 48, "encoder_layers": 3, "decoder_layers": 2, "encoder_attention_heads": 4,
    "decoder_attention_heads": 4, "encoder_ffn_dim": 112, "decoder_ffn_dim": 112, "max_position_embeddings": 24,
    "pad_token_id": 1, "bos_token_id": 0, "eos_token_id": 2, "decoder_start_token_id": 2, "scale_embedding": True
}


def marian(shared, tied):
    model = made("MarianMTModel", decoder_vocab_size=VOCABULARY, share_encoder_decoder_embeddings=shared,
                 tie_word_embeddings=tied, activation_function="swish", **SIDES)
    return pairs(model, 1, order="post_norm", positions="sinusoids", mlp="silu")


def m2m100():
    model = made("M2M100ForConditionalGeneration", activation_function="relu", **SIDES)
    return pairs(model, 2, order="pre_norm", positions="closed_sinusoids", first_position="2", mlp="relu")


def vit():
    model = made("ViTForImageClassification", hidden_size=48, num_hidden_layers=3, num_attention_heads=4,
                 intermediate_size=112, image_size=[12, 8], patch_size=4, num_channels=3, num_labels=VOCABULARY)
    targets = ids(1)
    targets[:, 2] = -1
    return model, {
        "kind": "vit", "heads": "4", "norm_epsilon": "1e-12", "mlp": "gelu_exact", "channels": "3",
        "mean": "0.4,0.5,0.6", "deviation": "0.2,0.3,0.4"
    }, {"picture": torch.randint(0, 256, (STEPS, BATCH, 36, 8), dtype=torch.uint8), "targets": targets}


def names_on_disk(model, folder):
    """The model's weights by the names that its file has, without what is saved and never learned."""
    model.save_pretrained(folder)
    stored = load_file(os.path.join(folder, "model.safetensors"))
    learned = {name: weight for name, weight in model.named_parameters() if weight.requires_grad}
    # Their values tell which is which: they are random.
    by_values = {weight.detach().numpy().tobytes(): weight for weight in learned.values()}
    named = {name: by_values[array.numpy().tobytes()] for name, array in stored.items()
             if array.numpy().tobytes() in by_values}
    assert len(named) == len(learned), sorted(learned.keys() - named.keys())
    return named


def expected(model, weights, settings, fields):
    """The same training with the library's model, its own loss apart: it has no mean over a whole batch of
    micro-batches, and smooths no labels."""
    optimizer, rates = make_optimizer(weights.values(), settings)
    results = {}
    for step, rate in enumerate(rates, 1):
        batch = {name: field[step - 1] for name, field in fields.items()}
        optimizer.zero_grad()
        logits, targets = peers.logits_of(model, settings, batch), batch["targets"].long()
        results.setdefault("logits", logits[:MICRO_BATCH].detach())
        losses = cross_entropy(logits, targets, SMOOTHING)
        loss = losses.sum() / (targets >= 0).sum()
        loss.backward()
        results["loss.%d" % step] = loss.detach()
        if step == 1:
            results["losses"] = losses.detach()
            results.update({"gradient." + name: weight.grad.clone() for name, weight in weights.items()})
        results["norm.%d" % step] = torch.nn.utils.clip_grad_norm_(weights.values(), float(settings["clip"]))
        for group in optimizer.param_groups:
            group["lr"] = rate
        optimizer.step()
        results.update(
            {"weight.%d.%s" % (step, name): weight.detach().clone()
             for name, weight in weights.items()})
    return results


def differences(ours, theirs, counts):
    """The largest by kind of result. Logits count where there is a target."""
    worst = {}
    for name, value in theirs.items():
        kind, own = name.split(".")[0], ours[name].double()
        value = value.double().reshape(own.shape)
        if kind == "logits":
            own, value = own[counts], value[counts]
        difference = (own - value).abs().max().item() / max(1.0, value.abs().max().item())
        worst[kind] = max(worst.get(kind, 0.0), difference)
    return worst


def errors_in_bf16(model, settings, fields, tensors, exact, counts, source):
    """Relative errors of logits: ours and the library's with autocast, ours and the library's as a model in bf16."""
    def error(logits):
        return ((logits[counts].float() - exact[counts]).norm() / exact[counts].norm()).item()

    ours = [error(torch.from_numpy(oracle.run(*read_safetensors(source), precision)["logits"]))
            for precision in ("bf16", "bf16_model")]
    batch = {name: field[0][:MICRO_BATCH] for name, field in fields.items()}
    with torch.no_grad():
        for weight, start in tensors:
            weight.copy_(start)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            theirs = [error(peers.logits_of(model, settings, batch))]
        theirs.append(error(peers.logits_of(model.to(torch.bfloat16), settings, batch)))
    return ours, theirs


def check(title, model, settings, fields, folder):
    weights = names_on_disk(model, folder)
    start = {name: weight.detach().clone() for name, weight in weights.items()}
    settings = dict(settings, **TRAINING)
    source, target = os.path.join(folder, "in.safetensors"), os.path.join(folder, "out.safetensors")
    save_file(dict(start, **fields), source, settings)
    write_safetensors(target, {}, oracle.run(*read_safetensors(source), "f32"))
    ours, theirs = load_file(target), expected(model, weights, settings, fields)
    assert ours.keys() == theirs.keys(), sorted(ours.keys() ^ theirs.keys())
    counts = fields["targets"][0][:MICRO_BATCH] >= 0
    worst = differences(ours, theirs, counts)
    print(title.ljust(28), "  ".join("%s %.1e" % item for item in worst.items()))
    tensors = [(weight, start[name]) for name, weight in weights.items()]
    own, library = errors_in_bf16(model, settings, fields, tensors, theirs["logits"], counts, source)
    print("".ljust(28), "bf16 logits, relative errors of the oracle and of transformers: autocast %.2e %.2e, model "
          "%.2e %.2e" % (own[0], library[0], own[1], library[1]))
    return all(worst[kind] <= LIMITS[kind] for kind in worst) and all(0.5 < a / b < 1.5 for a, b in zip(own, library))


def main():
    torch.set_num_threads(1)
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    cases = {
        "GPT-2, tied": gpt2(True), "GPT-2, untied": gpt2(False), "Llama, grouped heads": llama(False, False),
        "Llama, tied, with biases": llama(True, True), "BERT": bert(), "Marian, one table": marian(True, True),
        "Marian, two tables": marian(False, True), "Marian, three tables": marian(False, False), "M2M100": m2m100(),
        "ViT": vit()
    }
    good = []
    for title, case in cases.items():
        with tempfile.TemporaryDirectory() as folder:
            good.append(check(title, *case, folder))
    sys.exit(0 if all(good) else 1)


if __name__ == "__main__":
    main()
