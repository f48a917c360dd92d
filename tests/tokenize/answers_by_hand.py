"""Holds which tokens of 500 conversations count against tokenizers and templates that are written here by hand."""
import json
import random
import struct
import subprocess

from tokenizers import Tokenizer

import made_tokenizers
import texts


def chatml(messages):
    """(text, is markup, counts) of each part."""
    for role, content in messages:
        yield f"<|im_start|>{role}\n", True, False
        yield content, False, role == "assistant"
        yield "<|im_end|>", True, role == "assistant"
        yield "\n", True, False


def llama3(messages):
    yield "<|begin_of_text|>", True, False
    for role, content in messages:
        yield f"<|start_header_id|>{role}<|end_header_id|>\n\n", True, False
        yield content.strip(" \t\r\n"), False, role == "assistant"
        yield "<|eot_id|>", True, role == "assistant"


def joined(parts):
    """Neighbouring parts that are markup and count alike are one text."""
    together = []
    for text, is_markup, counts in parts:
        if together and is_markup and together[-1][1] and together[-1][2] == counts:
            together[-1] = (together[-1][0] + text, True, counts)
        elif text:
            together.append((text, is_markup, counts))
    return together


def conversations(count, seed):
    draw = random.Random(seed)
    lines = [line for line in texts.english().split("\n") if line.strip()] + texts.peculiar() + texts.drawn(60, 2) + texts.spaces()[:5]
    for _ in range(count):
        messages = [("system", draw.choice(lines))] if draw.random() < 0.4 else []
        for _ in range(draw.randrange(1, 6)):
            messages.append(("user", "\n".join(draw.choices(lines, k=draw.randrange(1, 4)))))
            messages.append(("assistant", "\n".join(draw.choices(lines, k=draw.randrange(1, 4)))))
        yield messages


def of_offsets(tokenizer, parts):
    """Ids and what counts of the whole text at once: a token counts where its letters stand in an answer. None where one stands in two
    parts."""
    whole, spans = "", []
    for text, _, counts in parts:
        spans.append((len(whole), len(whole) + len(text), counts))
        whole += text
    encoding = tokenizer.encode(whole, add_special_tokens=False)
    counts = []
    for begin, end in encoding.offsets:
        within = [counts for first, last, counts in spans if first <= begin and end <= last]
        if not within:
            return None
        counts.append(within[0])
    return encoding.ids, counts


def read_pair(prefix):
    """The documents of a pair of u16."""
    index, tokens = prefix.with_suffix(".idx").read_bytes(), prefix.with_suffix(".bin").read_bytes()
    sequences = struct.unpack_from("<Q", index, 18)[0]
    lengths = struct.unpack_from(f"<{sequences}i", index, 34)
    ids, mask, at, documents = memoryview(tokens).cast("H"), prefix.with_suffix(".mask").read_bytes(), 0, []
    for length in lengths:
        documents.append((list(ids[at:at + length]), [bool(byte) for byte in mask[at:at + length]]))
        at += length
    return documents


def compare(train, folder):
    equal = True
    for name, template, tokenizer in (("chatml", chatml, made_tokenizers.qwen2()), ("llama3", llama3, made_tokenizers.llama3())):
        tokenizer.add_special_tokens(["<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>"])
        path, corpus, prefix = folder / f"{name}_chat.json", folder / f"{name}.jsonl", folder / f"{name}_pair"
        tokenizer.save(str(path))
        markup, plain = Tokenizer.from_file(str(path)), Tokenizer.from_file(str(path))
        plain.encode_special_tokens = True
        chosen = list(conversations(500, 3))
        corpus.write_text("".join(json.dumps({"messages": [{"role": role, "content": content} for role, content in messages]}) + "\n"
                                  for messages in chosen))
        command = [train, "data", "import", str(corpus), "--template", name, "--tokenizer", str(path), "--output", str(prefix)]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        documents, differing, whole, counted = read_pair(prefix), 0, 0, 0
        for messages, found in zip(chosen, documents, strict=True):
            ids, counts, parts = [], [], joined(template(messages))
            for text, is_markup, part_counts in parts:
                some = (markup if is_markup else plain).encode(text, add_special_tokens=False).ids
                ids += some
                counts += [part_counts] * len(some)
            differing += (ids, counts) != found
            counted += sum(counts)
            at_once = of_offsets(markup, parts)
            if at_once is not None and at_once[0] == ids:  # neither special tokens in a message nor tokens over two parts
                whole += 1
                differing += at_once[1] != counts
        print(f"answers by {name}: {len(chosen)} conversations, {counted} tokens count, {differing} differ; of {whole} also by the "
              "offsets of the whole text", flush=True)
        equal = equal and differing == 0 and whole > 100
    return equal
