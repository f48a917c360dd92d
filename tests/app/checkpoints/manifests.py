"""Manifests as an attacker writes them: any content, and the CRC that belongs to it."""
import json


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc = TABLE[(crc ^ byte) & 255] ^ crc >> 8
    return crc ^ 0xFFFFFFFF


def row(value):
    for _ in range(8):
        value = value >> 1 ^ (0x82F63B78 if value & 1 else 0)
    return value


TABLE = [row(value) for value in range(256)]


def signed(text):
    """The text of a manifest's members, `{...` without what closes it, with its CRC behind."""
    return f'{text},\n"crc32c": "{crc32c(text.encode()):08x}"\n}}\n'


def read(checkpoint):
    content = json.loads((checkpoint / "manifest.json").read_text())
    del content["crc32c"]
    return content


def write(checkpoint, content):
    (checkpoint / "manifest.json").write_text(signed(json.dumps(content, indent=1)[:-2]))
