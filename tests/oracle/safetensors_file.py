"""Files of safetensors, read and written without the package of that name."""
import json

import numpy

NUMPY = {
    "F64": "<f8", "F32": "<f4", "F16": "<f2", "I64": "<i8", "I32": "<i4", "I16": "<i2", "U8": "u1",
    "BOOL": "?"
}
NAMES = {"float64": "F64", "float32": "F32", "int64": "I64", "int32": "I32", "uint8": "U8", "bool": "BOOL"}


def read_safetensors(path):
    """(metadata, {name: numpy array}); BF16 becomes f32."""
    with open(path, "rb") as file:
        header = json.loads(file.read(int.from_bytes(file.read(8), "little")))
        data = file.read()
    arrays = {}
    for name, entry in header.items():
        if name == "__metadata__":
            continue
        raw = data[slice(*entry["data_offsets"])]
        if entry["dtype"] == "BF16":
            array = (numpy.frombuffer(raw, "<u2").astype("<u4") << 16).view("<f4")
        else:
            array = numpy.frombuffer(raw, NUMPY[entry["dtype"]])
        arrays[name] = array.reshape(entry["shape"])
    return header.get("__metadata__", {}), arrays


def write_safetensors(path, metadata, arrays):
    arrays = {name: numpy.asarray(array, order="C") for name, array in arrays.items()}
    header, offset = {"__metadata__": metadata}, 0
    order = sorted(arrays, key=lambda name: (-arrays[name].itemsize, name))
    for name in order:
        array = arrays[name]
        header[name] = {
            "dtype": NAMES[array.dtype.name], "shape": list(array.shape),
            "data_offsets": [offset, offset + array.nbytes]
        }
        offset += array.nbytes
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        for name in order:
            file.write(arrays[name].tobytes())
