#!/usr/bin/env python3
"""kept_answers_test.py: an answer is found again for the same version, question and sources, and for no others."""
import os
import pathlib
import sys
import tempfile

sys.dont_write_bytecode = True
import kept_answers  # noqa: E402


def main():
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        source, answer, found = folder / "asks.py", folder / "answer", folder / "found"
        source.write_text("1 + 1")
        answer.write_text("2")
        key = kept_answers.key_of(["adder 1"], b"1 + 1", [source])
        os.environ.pop("MINDPIPE_KEPT_ANSWERS", None)
        kept_answers.keep(key, answer)
        assert not kept_answers.take(key, found), "nothing is kept where no folder is named"
        os.environ["MINDPIPE_KEPT_ANSWERS"] = str(folder / "kept")
        assert not kept_answers.take(key, found) and not found.exists(), "an answer that nobody gave"
        kept_answers.keep(key, answer)
        assert kept_answers.take(key, found) and found.read_text() == "2"
        others = [kept_answers.key_of(["adder 2"], b"1 + 1", [source]), kept_answers.key_of(["adder 1"], b"1 + 2", [source]),
                  kept_answers.key_of(["adder 1", ""], b"1 + 1", [source]), kept_answers.key_of(["adder 1"], b"1 + 1", [])]
        source.write_text("1 - 1")
        others.append(kept_answers.key_of(["adder 1"], b"1 + 1", [source]))
        assert len({key, *others}) == 6, "another version, question or source has the same key"
        assert not any(kept_answers.take(other, found) for other in others)
    print("kept answers are found for what they follow from, and for nothing else")


if __name__ == "__main__":
    main()
