"""Tokenizers made by Hugging Face's tokenizers for comparison: trained on texts of the tree, one for each way of splitting."""
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

import texts

GPT4 = (r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+")
CL100K = r"""'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]|\s+(?!\S)|\s"""
LLAMA3 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")
QWEN2 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")
# tiktoken's patterns, by the names that .tiktoken files of theirs have.
TIKTOKEN = {
    "gpt2": r"'(?:[sdmt]|ll|ve|re)| ?\p{L}++| ?\p{N}++| ?[^\s\p{L}\p{N}]++|\s++$|\s+(?!\S)|\s",
    "cl100k": CL100K,
    "o200k": "|".join([
        r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
        r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
        r"\p{N}{1,3}", r" ?[^\s\p{L}\p{N}]+[\r\n/]*", r"\s*[\r\n]+", r"\s+(?!\S)", r"\s+"]),
    "llama3": LLAMA3}


def letters_of_bytes():
    """The letters by which byte-level vocabularies write bytes."""
    printable = [*range(ord("!"), ord("~") + 1), *range(0xa1, 0xad), *range(0xae, 0x100)]
    others = [byte for byte in range(256) if byte not in printable]
    return {**{byte: chr(byte) for byte in printable}, **{byte: chr(256 + at) for at, byte in enumerate(others)}}


def trained(tokenizer, size, special, **more):
    trainer_of = {"BPE": trainers.BpeTrainer, "WordPiece": trainers.WordPieceTrainer}[type(tokenizer.model).__name__]
    trainer = trainer_of(vocab_size=size, special_tokens=special, show_progress=False, **more)
    tokenizer.train_from_iterator([texts.english(), texts.code()[:400_000], texts.mixed()], trainer)
    return tokenizer


def byte_level(size, pattern=None, ignore_merges=False):
    tokenizer = Tokenizer(models.BPE(ignore_merges=ignore_merges))
    if pattern is None:
        tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    else:
        tokenizer.pre_tokenizer = pre_tokenizers.Sequence([
            pre_tokenizers.Split(Regex(pattern), "isolated", invert=False),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.post_processor = processors.ByteLevel(trim_offsets=False)
    return trained(tokenizer, size, ["<|endoftext|>"], initial_alphabet=pre_tokenizers.ByteLevel.alphabet())


def gpt2(size=1000):
    return byte_level(size)


def gpt4(size=1000):
    return byte_level(size, GPT4)


def llama3(size=1000):
    tokenizer = byte_level(size, LLAMA3, ignore_merges=True)
    tokenizer.add_special_tokens(["<|begin_of_text|>", "<|end_of_text|>"])
    start = tokenizer.token_to_id("<|begin_of_text|>")
    tokenizer.post_processor = processors.Sequence([
        processors.ByteLevel(trim_offsets=False),
        processors.TemplateProcessing(single="<|begin_of_text|> $A", pair="<|begin_of_text|> $A <|begin_of_text|>:1 $B:1",
                                      special_tokens=[("<|begin_of_text|>", start)])])
    return tokenizer


def qwen2(size=1000):
    tokenizer = byte_level(size, QWEN2)
    tokenizer.normalizer = normalizers.NFC()
    tokenizer.add_special_tokens(["<|im_start|>", "<|im_end|>"])
    return tokenizer


def with_fallback(size, unknown="<unk>"):
    special = [unknown, "<s>", "</s>"] + [f"<0x{byte:02X}>" for byte in range(256)]
    tokenizer = Tokenizer(models.BPE(unk_token=unknown, byte_fallback=True, fuse_unk=True))
    return tokenizer, special


def llama2(size=1200):
    tokenizer, special = with_fallback(size)
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="never")
    trained(tokenizer, size, special, limit_alphabet=100)
    tokenizer.normalizer = normalizers.Sequence([normalizers.Prepend("\u2581"), normalizers.Replace(" ", "\u2581")])
    tokenizer.pre_tokenizer = None
    tokenizer.decoder = decoders.Sequence([decoders.Replace("\u2581", " "), decoders.ByteFallback(), decoders.Fuse(),
                                           decoders.Strip(" ", 1, 0)])
    tokenizer.post_processor = processors.TemplateProcessing(single="<s> $A", pair="<s> $A <s>:1 $B:1", special_tokens=[("<s>", 1)])
    return tokenizer


def metaspace(size=1200):
    tokenizer, special = with_fallback(size)
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="first")
    tokenizer.decoder = decoders.Sequence([decoders.ByteFallback(), decoders.Metaspace(prepend_scheme="first")])
    return trained(tokenizer, size, special, limit_alphabet=100)


def bert(size=1200):
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece()
    trained(tokenizer, size, ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"], limit_alphabet=100)
    tokenizer.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    return tokenizer


def words(size=1000):
    """Normal forms, spaces, digits and punctuation one after the other, words that end in a suffix, no unknown token."""
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>", end_of_word_suffix="</w>", continuing_subword_prefix="@@"))
    tokenizer.normalizer = normalizers.Sequence([
        normalizers.NFKD(), normalizers.StripAccents(), normalizers.Lowercase(), normalizers.Strip(),
        normalizers.Replace(Regex(r"\s{2,}"), " "), normalizers.NFC()])
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Digits(individual_digits=False), pre_tokenizers.Punctuation("merged_with_next")])
    tokenizer.decoder = decoders.BPEDecoder(suffix="</w>")
    trained(tokenizer, size, ["<unk>"], end_of_word_suffix="</w>", continuing_subword_prefix="@@", limit_alphabet=100)
    tokenizer.post_processor = processors.RobertaProcessing(("<unk>", 0), ("<unk>", 0))
    return tokenizer


def flags(size=600):
    """Added tokens with each of their flags, in a tokenizer of words."""
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>"))
    tokenizer.normalizer = normalizers.Sequence([normalizers.NFKC(), normalizers.Lowercase()])
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Whitespace(), pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.Punctuation("contiguous")])
    trained(tokenizer, size, ["<unk>"], limit_alphabet=100)
    tokenizer.add_special_tokens([AddedToken("<mask>", lstrip=True), AddedToken("<end>", rstrip=True), "<s>"])
    tokenizer.add_tokens([AddedToken("wonder", single_word=True), AddedToken("Alice", normalized=False),
                          AddedToken("QUEEN", normalized=True), AddedToken("al", single_word=True, lstrip=True, rstrip=True)])
    return tokenizer


ALL = {"gpt2": gpt2, "gpt4": gpt4, "llama3": llama3, "qwen2": qwen2, "llama2": llama2, "metaspace": metaspace, "bert": bert,
       "words": words, "flags": flags}
