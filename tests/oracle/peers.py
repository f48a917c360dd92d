"""How models of transformers are fed the fields that a kind of model reads."""
import torch


def pixels(picture, settings):
    """[batch, channels * height, width] bytes as the numbers that a model of pictures reads."""
    mean, deviation = (torch.tensor([float(number) for number in settings[name].split(",")]).view(-1, 1, 1)
                       for name in ("mean", "deviation"))
    samples, rows, columns = picture.shape
    channels = int(settings["channels"])
    return (picture.view(samples, channels, rows // channels, columns) / 255 - mean) / deviation


def logits_of(model, settings, batch):
    """[batch, targets, vocabulary], for the fields of a batch by name."""
    fields = {name: field if field.dtype == torch.uint8 else field.long() for name, field in batch.items()}
    if settings["kind"] == "gpt":
        return model(fields["tokens"]).logits
    if settings["kind"] == "bert":
        logits = model(fields["tokens"]).logits
        return logits.gather(1, fields["picked"].clamp(min=0).unsqueeze(-1).expand(-1, -1, logits.shape[-1]))
    if settings["kind"] == "transformer":
        seen = torch.arange(fields["source"].shape[1]) < fields["source_lengths"]
        return model(fields["source"], attention_mask=seen.long(), decoder_input_ids=fields["tokens"]).logits
    numbers = pixels(fields["picture"], settings).to(next(model.parameters()).dtype)
    return model(numbers).logits.unsqueeze(1)
