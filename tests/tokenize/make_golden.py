"""Writes tests/golden/tokenizers: small tokenizers of each kind, and the ids that tokenizers, tiktoken and sentencepiece give texts; and
the merges that tokenizers trains on data/alice.txt.

make_golden.py CASE...: with these three packages, for the cases that are named, as gpt2.json; a case changes only where a peer was wrong.
"""
import base64
import io
import json
import sys

import sentencepiece
import tiktoken
from tokenizers import Tokenizer, models, pre_tokenizers, trainers

import made_tokenizers
import texts

FOLDER = texts.TREE / "tests/golden/tokenizers"
TEXTS = json.loads((FOLDER / "golden.json").read_text())["texts"]


def of_tokenizers(name):
    tokenizer = made_tokenizers.ALL[name](500)
    (FOLDER / f"{name}.json").write_text(tokenizer.to_str(pretty=False))
    return {"ids": [tokenizer.encode(text, add_special_tokens=False).ids for text in TEXTS],
            "decoded": [tokenizer.decode(tokenizer.encode(text, add_special_tokens=False).ids) for text in TEXTS],
            "template": tokenizer.encode(TEXTS[40]).ids, "pair": tokenizer.encode(TEXTS[40], TEXTS[41]).ids,
            "types": tokenizer.encode(TEXTS[40], TEXTS[41]).type_ids}


def of_tiktoken(name):
    letters = {letter: byte for byte, letter in made_tokenizers.letters_of_bytes().items()}
    made = json.loads((FOLDER / "gpt4.json").read_text())
    tokens = [bytes(letters[letter] for letter in token) for token, _ in sorted(made["model"]["vocab"].items(), key=lambda item: item[1])
              if token != "<|endoftext|>"]
    ranks = {token: rank for rank, token in enumerate(tokens)}
    (FOLDER / f"{name}.tiktoken").write_text("".join(f"{base64.b64encode(token).decode()} {rank}\n" for token, rank in ranks.items()))
    encoding = tiktoken.Encoding("small", pat_str=made_tokenizers.TIKTOKEN[name], mergeable_ranks=ranks, special_tokens={})
    return {"ids": [encoding.encode_ordinary(text) for text in TEXTS], "decoded": TEXTS}


def of_sentence_piece(name, **more):
    model = io.BytesIO()
    sentences = [line for line in texts.english().split("\n") if line.strip()][:1500]
    sentencepiece.SentencePieceTrainer.train(sentence_iterator=iter(sentences), model_writer=model, vocab_size=700,
                                                   normalization_rule_name="identity", minloglevel=2, **more)
    (FOLDER / f"{name}.model").write_bytes(model.getvalue())
    processor = sentencepiece.SentencePieceProcessor(model_proto=model.getvalue())
    return {"ids": [processor.encode(text) for text in TEXTS], "decoded": [processor.decode(processor.encode(text)) for text in TEXTS]}


def merges_of_alice(size=656):
    """One merge a line: what tokenizers trains with 400 merges."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.train_from_iterator([texts.english()], trainers.BpeTrainer(
        vocab_size=size, special_tokens=[], show_progress=False, initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
    merges = json.loads(tokenizer.to_str())["model"]["merges"]
    (FOLDER / "merges_of_alice.txt").write_text("".join(f"{first} {second}\n" for first, second in merges))


def case(name):
    stem, kind = name.split(".")
    if kind == "json":
        return of_tokenizers(stem)
    if kind == "tiktoken":
        return of_tiktoken(stem)
    return of_sentence_piece(stem, **({"model_type": "unigram"} if stem == "unigram" else {"model_type": "bpe", "byte_fallback": True}))


def main():
    cases = json.loads((FOLDER / "golden.json").read_text())["cases"]
    for name in sys.argv[1:]:
        if name == "merges_of_alice.txt":
            merges_of_alice()
        else:
            cases[name] = case(name)
    (FOLDER / "golden.json").write_text(json.dumps({"texts": TEXTS, "cases": cases}, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main()
