"""Holds ids against those of tokenizers, tiktoken and sentencepiece, and trained merges against those of tokenizers.

compare_with_peers.py IDS_OF_TEXTS MINDPIPE_TRAIN [PART...]: with these three packages, by a Python with Unicode 14 (3.11). Parts: unicode,
tokenizers, tiktoken, sentencepiece, merges, answers. Code 1 where something differs, which is shown.
"""
import base64
import io
import json
import pathlib
import subprocess
import sys
import tempfile

import sentencepiece
import tiktoken
from tokenizers import Tokenizer, models, pre_tokenizers, trainers

import answers_by_hand
import made_tokenizers
import older_unicode
import texts

OURS, TRAIN = sys.argv[1:3]
FOLDER = pathlib.Path(tempfile.mkdtemp(prefix="mindpipe-peers-"))


def all_texts():
    special = [" <mask> a <end>  b wonder wonderful wonder. Alice alice QUEEN queen al al. Xal <s>x",
               "a<|endoftext|><|endoftext|> b<|im_start|>user\n<|im_end|><|begin_of_text|>\r\n<unk></s>[CLS] [MASK][PAD]"]
    return (texts.english_documents(8) + texts.code_documents(8) + texts.mixed_documents(4) + texts.every_character() + texts.spaces()
            + texts.peculiar() + special)


def ids_here(path, chosen, *options):
    return texts.lists_in(subprocess.run([OURS, str(path), *options], input=texts.packed(chosen), check=True, capture_output=True).stdout)


def compare(name, chosen, theirs, ours):
    """Says how much was equal, or shows the first texts that differ."""
    differing = [at for at in range(len(chosen)) if theirs[at] != ours[at]]
    size = sum(len(text.encode()) for text in chosen)
    print(f"{name}: {len(chosen)} texts, {size / 1e6:.1f} MB, {sum(map(len, theirs))} ids, {len(differing)} texts differ", flush=True)
    for at in differing[:5]:
        place = next((i for i, (one, other) in enumerate(zip(theirs[at], ours[at])) if one != other), min(len(theirs[at]), len(ours[at])))
        print(f"  text {at} {ascii(chosen[at][:60])}, id {place}: theirs {theirs[at][place:place + 6]}, ours {ours[at][place:place + 6]}")
    return not differing


def unicode():
    kept = (texts.TREE / "src/tokenize/older_unicode.cpp").read_text()
    equal = "".join(kept.split()) == "".join(older_unicode.file_text().split())
    print(f"src/tokenize/older_unicode.cpp: {'as' if equal else 'NOT as'} tests/tokenize/older_unicode.py prints it", flush=True)
    return equal


def by_tokenizers():
    chosen, equal = all_texts(), True
    for name, make in made_tokenizers.ALL.items():
        path = FOLDER / f"{name}.json"
        made = make()
        made.save(str(path))
        theirs = [encoding.ids for encoding in made.encode_batch(chosen, add_special_tokens=False)]
        equal = compare(name, chosen, theirs, ids_here(path, chosen)) and equal
    return equal


def by_tiktoken():
    letters = {letter: byte for byte, letter in made_tokenizers.letters_of_bytes().items()}
    chosen, equal = all_texts(), True
    for name, pattern in made_tokenizers.TIKTOKEN.items():
        vocabulary = json.loads(made_tokenizers.byte_level(1500, pattern).to_str())["model"]["vocab"]
        tokens = [bytes(letters[letter] for letter in token) for token, _ in sorted(vocabulary.items(), key=lambda item: item[1])
                  if token != "<|endoftext|>"]
        ranks = {token: rank for rank, token in enumerate(tokens)}
        path = FOLDER / f"{name}.tiktoken"
        path.write_text("".join(f"{base64.b64encode(token).decode()} {rank}\n" for token, rank in ranks.items()))
        encoding = tiktoken.Encoding(name, pat_str=pattern, mergeable_ranks=ranks, special_tokens={})
        theirs = encoding.encode_ordinary_batch(chosen, num_threads=2)
        equal = compare(f"tiktoken {name}", chosen, theirs, ids_here(path, chosen, "--plain")) and equal
    return equal


def by_sentence_piece():
    chosen, equal = all_texts(), True
    for name, more in {"unigram": {"model_type": "unigram"}, "pairs": {"model_type": "bpe", "byte_fallback": True}}.items():
        model = io.BytesIO()
        sentences = [line for line in texts.english().split("\n") if line.strip()] + texts.peculiar()
        sentencepiece.SentencePieceTrainer.train(sentence_iterator=iter(sentences), model_writer=model, vocab_size=1500, minloglevel=2,
                                                 **more)
        path = FOLDER / f"{name}.model"
        path.write_bytes(model.getvalue())
        processor = sentencepiece.SentencePieceProcessor(model_proto=model.getvalue())
        equal = compare(f"sentencepiece {name}", chosen, processor.encode(chosen), ids_here(path, chosen)) and equal
    return equal


def merges():
    """2000 merges on English with mixed scripts and on code, with 1 and 4 threads."""
    equal = True
    for name, chosen in {"english": texts.english_documents(7) + texts.mixed_documents(3), "code": texts.code_documents(10)}.items():
        corpus = FOLDER / f"{name}.jsonl"
        corpus.write_text("".join(json.dumps({"text": text}) + "\n" for text in chosen))
        made = Tokenizer(models.BPE())
        made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        made.train_from_iterator(chosen, trainers.BpeTrainer(vocab_size=2257, special_tokens=["<|endoftext|>"], show_progress=False,
                                                             initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
        theirs = json.loads(made.to_str())["model"]
        for threads in (1, 4):
            path = FOLDER / f"{name}{threads}.json"
            command = [TRAIN, "data", "train-tokenizer", str(corpus), "--output", str(path), "--vocabulary", "2257", "--special",
                       "<|endoftext|>", "--threads", str(threads)]
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
            ours = json.loads(path.read_text())["model"]
            same = theirs["merges"] == ours["merges"] and theirs["vocab"] == ours["vocab"]
            same = same and Tokenizer.from_file(str(path)).encode(chosen[0]).ids == made.encode(chosen[0]).ids
            print(f"merges of {name}, {threads} threads: {len(ours['merges'])}, {'equal' if same else 'NOT EQUAL'}", flush=True)
            equal = equal and same
    return equal


PARTS = {"unicode": unicode, "tokenizers": by_tokenizers, "tiktoken": by_tiktoken, "sentencepiece": by_sentence_piece, "merges": merges,
         "answers": lambda: answers_by_hand.compare(TRAIN, FOLDER)}

if __name__ == "__main__":
    sys.exit(0 if all([PARTS[name]() for name in sys.argv[3:] or PARTS]) else 1)
