#!/usr/bin/env python3
"""Checks gpt.py itself against GPT2LMHeadModel and LlamaForCausalLM of transformers: logits, loss, gradients,
three AdamW steps, and how far autocast and the model in bf16 are from f32.

    check_against_transformers.py        with an interpreter that imports torch, transformers and safetensors

Also checks the reader and the writer of gpt.py against the package `safetensors`. Prints the largest
differences; exits 1 if one is too large.
"""
import os
import sys
import tempfile

import torch
from safetensors.torch import load_file, save_file
from transformers import GPT2Config, GPT2LMHeadModel, LlamaConfig, LlamaForCausalLM

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import gpt  # noqa: E402

STEPS, RATES = 3, [1e-3, 7e-4, 3e-4]
# Adam divides a gradient by its own size, so noise of a gradient near zero moves a weight by as much as the
# rate.
LIMITS = {"logits": 2e-5, "loss": 1e-6, "losses": 1e-5, "norm": 1e-5, "gradient": 1e-5, "weight": 1e-4}


def gpt2(tied):
    torch.manual_seed(1)
    model = GPT2LMHeadModel(
        GPT2Config(vocab_size=101, n_positions=24, n_embd=48, n_layer=3, n_head=4, tie_word_embeddings=tied,
                   resid_pdrop=0, embd_pdrop=0, attn_pdrop=0, bos_token_id=0, eos_token_id=0))
    return model, {
        "heads": "4", "norm": "layer", "norm_epsilon": "1e-5", "positions": "learned", "mlp": "gelu"
    }


def llama(tied, bias):
    torch.manual_seed(2)
    model = LlamaForCausalLM(
        LlamaConfig(vocab_size=101, max_position_embeddings=64, hidden_size=48, intermediate_size=112,
                    num_hidden_layers=3, num_attention_heads=6, num_key_value_heads=2, rms_norm_eps=1e-6,
                    tie_word_embeddings=tied, attention_bias=bias, mlp_bias=bias))
    return model, {
        "heads": "6", "key_value_heads": "2", "norm": "rms", "norm_epsilon": "1e-6", "positions": "rotary",
        "mlp": "swiglu"
    }


def expected(model, tokens, targets, micro_batch, clip):
    """The same training with the library's model, its own loss apart: it has no mean over a whole batch of
    micro-batches."""
    weights = dict(model.named_parameters())
    optimizer = torch.optim.AdamW(
        [{"params": [w for w in weights.values() if w.dim() >= 2], "weight_decay": 0.1},
         {"params": [w for w in weights.values() if w.dim() < 2], "weight_decay": 0.0}], betas=(0.9, 0.95),
        eps=1e-8)
    results = {}
    for step, rate in enumerate(RATES, 1):
        optimizer.zero_grad()
        logits = model(tokens[step - 1]).logits
        results.setdefault("logits", logits[:micro_batch].detach())
        loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), targets[step - 1].flatten().long(),
                                                 ignore_index=-1)
        loss.backward()
        results["loss.%d" % step] = loss.detach()
        if step == 1:
            of_tokens = torch.nn.functional.cross_entropy(logits.transpose(1, 2), targets[0].long(),
                                                          ignore_index=-1, reduction="none")
            results["losses"] = of_tokens.detach()
            results.update({"gradient." + name: weight.grad.clone() for name, weight in weights.items()})
        results["norm.%d" % step] = torch.nn.utils.clip_grad_norm_(weights.values(), clip)
        for group in optimizer.param_groups:
            group["lr"] = rate
        optimizer.step()
        results.update(
            {"weight.%d.%s" % (step, name): weight.detach().clone()
             for name, weight in weights.items()})
    return results


def check(title, model, settings, folder):
    model.eval()
    # norms that are not ones and biases that are not zeros, so that a forgotten one shows
    with torch.no_grad():
        for weight in model.parameters():
            weight.add_(0.05 * torch.randn_like(weight))
    tokens = torch.randint(0, 101, (STEPS, 4, 17), dtype=torch.int32)
    targets = torch.randint(0, 101, (STEPS, 4, 17), dtype=torch.int32)
    targets[:, 1, 3:9] = -1
    metadata = dict(settings, steps=str(STEPS), rate=",".join(map(str, RATES)), micro_batch="2", clip="1.0")
    tensors = {name: weight.detach().clone() for name, weight in model.named_parameters()}
    source, target = os.path.join(folder, "in.safetensors"), os.path.join(folder, "out.safetensors")
    save_file(dict(tensors, tokens=tokens, targets=targets), source, metadata)
    gpt.write_safetensors(target, {}, gpt.run(*gpt.read_safetensors(source), "f32"))
    ours, theirs = load_file(target), expected(model, tokens, targets, 2, 1.0)
    assert ours.keys() == theirs.keys(), sorted(ours.keys() ^ theirs.keys())
    worst = {}
    for name, value in theirs.items():
        kind = name.split(".")[0]
        difference = (ours[name].double() - value.double()).abs().max().item() / max(
            1.0,
            value.double().abs().max().item())
        worst[kind] = max(worst.get(kind, 0.0), difference)
    print(title.ljust(28), "  ".join("%s %.1e" % item for item in worst.items()))
    def error(logits):
        return ((logits - theirs["logits"]).norm() / theirs["logits"].norm()).item()

    ours = [
        error(torch.from_numpy(gpt.run(*gpt.read_safetensors(source), precision)["logits"]))
        for precision in ("bf16", "bf16_model")
    ]
    model.load_state_dict(tensors, strict=False)
    with torch.no_grad():
        with torch.autocast("cpu", dtype=torch.bfloat16):
            own = [error(model(tokens[0][:2]).logits.float())]
        own.append(error(model.to(torch.bfloat16)(tokens[0][:2]).logits.float()))
    print(
        "".ljust(28),
        "bf16 logits, relative errors of gpt.py and of transformers: autocast %.2e %.2e, model %.2e %.2e" %
        (ours[0], own[0], ours[1], own[1]))
    return all(worst[kind] <= LIMITS[kind] for kind in worst) and all(0.5 < a / b < 1.5
                                                                      for a, b in zip(ours, own))


def main():
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        good = [
            check("GPT-2, tied", *gpt2(True), folder),
            check("GPT-2, untied", *gpt2(False), folder),
            check("Llama, grouped heads", *llama(False, False), folder),
            check("Llama, tied, with biases", *llama(True, True), folder)
        ]
    sys.exit(0 if all(good) else 1)


if __name__ == "__main__":
    main()
