"""Answers of programs that are no part of this tree, kept under a hash of all that they follow from: the program's version, the question
and the sources that ask. They are kept in the folder that MINDPIPE_KEPT_ANSWERS names, which ctest sets to one of the build; without it
nothing is kept, and each question is asked."""
import hashlib
import os
import pathlib
import shutil


def folder():
    named = os.environ.get("MINDPIPE_KEPT_ANSWERS")
    return pathlib.Path(named) if named else None


def key_of(versions, question, sources):
    """The hash of versions (texts), a question (bytes) and the files that ask, by their folders, names and contents."""
    parts = [*map(str.encode, versions), question]
    for source in sorted(map(pathlib.Path, sources)):
        parts += [f"{source.parent.name}/{source.name}".encode(), source.read_bytes()]
    hashed = hashlib.sha256()
    for part in parts:
        hashed.update(len(part).to_bytes(8, "little") + part)
    return hashed.hexdigest()


def take(key, path):
    """Copies the kept answer to `path`; false where there is none."""
    if folder() is None or not (folder() / key).is_file():
        return False
    shutil.copyfile(folder() / key, path)
    return True


def keep(key, path):
    """Keeps a file as an answer. It gets its name once it is whole, so that no reader finds a part of it."""
    if folder() is None:
        return
    folder().mkdir(parents=True, exist_ok=True)
    partial = folder() / f".{key}.{os.getpid()}"
    shutil.copyfile(path, partial)
    partial.rename(folder() / key)
