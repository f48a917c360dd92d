"""Writes tests/golden/tokenizers: small tokenizers of each kind, and the ids that tokenizers, tiktoken and sentencepiece give texts.

make_golden.py: with these three packages; the tree's golden files change only where a peer was wrong.
"""
import base64
import io
import json

import sentencepiece
import tiktoken

import made_tokenizers
import texts

FOLDER = texts.TREE / "tests/golden/tokenizers"
TEXTS = [text for text in texts.spaces() if len(text) < 250] + texts.peculiar() + texts.drawn(6, 5) + [
    texts.english()[1000:3000], (texts.TREE / "tests/tokenize/texts.py").read_text()[:1500],
    " <mask> a <end>  b wonder wonderful wonder. Alice alice Queen queen al al. Xal <s>x"]


def of_tokenizers(name):
    tokenizer = made_tokenizers.ALL[name](500)
    (FOLDER / f"{name}.json").write_text(tokenizer.to_str(pretty=False))
    return {"ids": [tokenizer.encode(text, add_special_tokens=False).ids for text in TEXTS],
            "decoded": [tokenizer.decode(tokenizer.encode(text, add_special_tokens=False).ids) for text in TEXTS],
            "template": tokenizer.encode(TEXTS[40]).ids, "pair": tokenizer.encode(TEXTS[40], TEXTS[41]).ids,
            "types": tokenizer.encode(TEXTS[40], TEXTS[41]).type_ids}


def of_tiktoken():
    letters = {letter: byte for byte, letter in made_tokenizers.letters_of_bytes().items()}
    made = json.loads((FOLDER / "gpt4.json").read_text())
    tokens = [bytes(letters[letter] for letter in token) for token, _ in sorted(made["model"]["vocab"].items(), key=lambda item: item[1])
              if token != "<|endoftext|>"]
    ranks = {token: rank for rank, token in enumerate(tokens)}
    (FOLDER / "cl100k.tiktoken").write_text("".join(f"{base64.b64encode(token).decode()} {rank}\n" for token, rank in ranks.items()))
    encoding = tiktoken.Encoding("small", pat_str=made_tokenizers.CL100K, mergeable_ranks=ranks, special_tokens={})
    return {"ids": [encoding.encode_ordinary(text) for text in TEXTS], "decoded": TEXTS}


def of_sentence_piece(name, **more):
    model = io.BytesIO()
    sentences = [line for line in texts.english().split("\n") if line.strip()][:1500]
    sentencepiece.SentencePieceTrainer.train(sentence_iterator=iter(sentences), model_writer=model, vocab_size=700,
                                                   normalization_rule_name="identity", minloglevel=2, **more)
    (FOLDER / f"{name}.model").write_bytes(model.getvalue())
    processor = sentencepiece.SentencePieceProcessor(model_proto=model.getvalue())
    return {"ids": [processor.encode(text) for text in TEXTS], "decoded": [processor.decode(processor.encode(text)) for text in TEXTS]}


def main():
    FOLDER.mkdir(exist_ok=True)
    cases = {f"{name}.json": of_tokenizers(name) for name in made_tokenizers.ALL}
    cases["cl100k.tiktoken"] = of_tiktoken()
    cases["unigram.model"] = of_sentence_piece("unigram", model_type="unigram")
    cases["pairs.model"] = of_sentence_piece("pairs", model_type="bpe", byte_fallback=True)
    (FOLDER / "golden.json").write_text(json.dumps({"texts": TEXTS, "cases": cases}, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main()
