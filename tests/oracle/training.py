"""A training in plain PyTorch (1.13 or newer) of any model of this folder: what it is told, and what it leaves.

A model is a class with
  FIELDS        names of the tensors of a batch, its targets among them
  logits(...)   of a micro-batch, whose fields but the targets are its arguments: as many rows as targets
  STATISTICS    endings of the names of weights that no optimizer moves; end_step() moves them

Metadata (texts) that every training reads: micro_batch (the batch); steps (1: only one update; 0: none); rate:
one number, or one for each step with commas (1e-3); beta1 (0.9), beta2 (0.95), epsilon (1e-8), weight_decay
(0.1), clip (1; 0: none), label_smoothing (0), keep all|last (all: weights after every step); optimizer
adamw|sgd (adamw); sgd reads rate, momentum (0), nesterov 0|1 (0) and weight_decay. Weights with two extents or
more decay.

Fields are [batch, ...], or [steps, batch, ...] for a batch of its own in every step, which `batches` in the
metadata says: one|each (one). Negative targets are ignored.

Results, all F32 unless it says otherwise, steps counted from 1:

  logits           [micro_batch, targets, vocabulary] of the first micro-batch before any update
  losses           [batch, targets] of every target of the first step, before its update; 0 where ignored
  loss.<step>      F64, rank 0: mean over the valid targets of the batch, before the step's update
  norm.<step>      F64, rank 0: global norm of the gradients before clipping
  gradient.<name>  of the first step's loss, before clipping, in the shape of the weight
  weight.<step>.<name>  after the step's update
"""
import math

import numpy
import torch
import torch.nn.functional as F


def make_optimizer(weights, metadata):
    """The optimizer, and a rate for each step."""
    steps = max(int(metadata.get("steps", 1)), 1)
    rates = [float(rate) for rate in metadata.get("rate", "1e-3").split(",")]
    rates = rates * steps if len(rates) == 1 else rates
    matrices, vectors = ([w for w in weights if (w.dim() >= 2) == many] for many in (True, False))
    groups = [{"params": matrices, "weight_decay": float(metadata.get("weight_decay", 0.1))},
              {"params": vectors, "weight_decay": 0.0}]
    groups = [group for group in groups if group["params"]]
    if metadata.get("optimizer", "adamw") == "sgd":
        return torch.optim.SGD(groups, lr=rates[0], momentum=float(metadata.get("momentum", 0)),
                               nesterov=metadata.get("nesterov", "0") == "1"), rates
    betas = (float(metadata.get("beta1", 0.9)), float(metadata.get("beta2", 0.95)))
    return torch.optim.AdamW(groups, lr=rates[0], eps=float(metadata.get("epsilon", 1e-8)), betas=betas), rates


def cross_entropy(logits, targets, smoothing):
    """Of every target; 0 where it is negative."""
    return F.cross_entropy(logits.flatten(0, 1), targets.masked_fill(targets < 0, -100).flatten(), reduction="none",
                           label_smoothing=smoothing).view(targets.shape)


def take_fields(model_class, arrays, metadata):
    """Takes the fields out of an input's tensors: for each step a batch of them, by name."""
    fields = {name: arrays.pop(name) for name in model_class.FIELDS}
    fields = {name: field if field.dtype == torch.uint8 else field.long() for name, field in fields.items()}
    steps = max(int(metadata.get("steps", 1)), 1)
    if metadata.get("batches", "one") == "one":
        return [fields] * steps
    return [{name: field[step] for name, field in fields.items()} for step in range(steps)]


def forward_and_backward(model, batch, micro_batch, smoothing):
    """Gradients of the mean loss of a batch; losses of its targets, and the logits of its first micro-batch."""
    valid, losses, first = int((batch["targets"] >= 0).sum()), [], None
    for start in range(0, len(batch["targets"]), micro_batch):
        part = {name: field[start:start + micro_batch] for name, field in batch.items()}
        targets = part.pop("targets")
        model.prepare()
        logits = model.logits(**part)
        first = logits.detach() if first is None else first
        loss = cross_entropy(logits, targets, smoothing)
        (loss.sum() / valid).backward()
        losses.append(loss.detach())
    losses = torch.cat(losses)
    return losses, losses.double().sum() / valid, first


def run(model_class, metadata, arrays, precision):
    """The results for an input's metadata and tensors, by name."""
    exact = torch.float64 if precision == "f64" else torch.float32
    arrays = {name: torch.from_numpy(numpy.array(array)) for name, array in arrays.items()}
    batches = take_fields(model_class, arrays, metadata)
    everything = {name: array.to(exact) for name, array in arrays.items()}
    weights = {name: array.requires_grad_() for name, array in everything.items()
               if not name.endswith(model_class.STATISTICS)}
    model = model_class(everything, metadata, precision)
    optimizer, rates = make_optimizer(weights.values(), metadata)
    clip, smoothing = float(metadata.get("clip", 1)), float(metadata.get("label_smoothing", 0))
    steps, results = int(metadata.get("steps", 1)), {}
    for step, (batch, rate) in enumerate(zip(batches, rates), 1):
        optimizer.zero_grad()
        micro_batch = int(metadata.get("micro_batch", len(batch["targets"])))
        losses, loss, logits = forward_and_backward(model, batch, micro_batch, smoothing)
        results["loss.%d" % step] = numpy.float64(loss)
        if step == 1:
            results.update(logits=logits.float().numpy(), losses=losses.float().numpy())
            results.update({"gradient." + name: weight.grad.float().numpy().copy() for name, weight in weights.items()})
        norm = torch.nn.utils.clip_grad_norm_(list(weights.values()), clip if clip > 0 else math.inf)
        results["norm.%d" % step] = numpy.float64(norm.item())
        if steps == 0:
            break
        for group in optimizer.param_groups:
            group["lr"] = rate
        optimizer.step()
        model.end_step()
        if metadata.get("keep", "all") == "all" or step == steps:
            results.update({
                "weight.%d.%s" % (step, name): weight.detach().float().numpy().copy()
                for name, weight in everything.items()
            })
    return results
