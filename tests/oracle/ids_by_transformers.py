#!/usr/bin/env python3
"""Opens the tokenizers of directories as AutoTokenizer does and prints, for each directory and each line of a text, the ids
without what a template puts around them.

    ids_by_transformers.py TEXT DIRECTORY...
"""
import sys

import transformers


def main():
    transformers.logging.set_verbosity_error()
    with open(sys.argv[1], encoding="utf-8", newline="") as file:
        lines = file.read().split("\n")
    for directory in sys.argv[2:]:
        tokenizer = transformers.AutoTokenizer.from_pretrained(directory)
        for line in lines:
            print(*tokenizer(line, add_special_tokens=False)["input_ids"])


if __name__ == "__main__":
    main()
