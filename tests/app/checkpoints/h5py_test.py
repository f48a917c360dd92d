"""A checkpoint is read by h5py as any HDF5 file: every tensor is there, and the model's are those of the run's weights file."""
import json
import subprocess
import sys
import tempfile

from the_run import STEPS, Runs, main

# Read by whichever interpreter has h5py: the weights as safetensors has them, each put together from the checkpoint's tensors.
READER = '''
import json, struct, sys
import h5py, numpy

PLACES = {"wte.weight": "embedding.embedding.weight", "wpe.weight": "positions.positions.weight", "ln_f.": "head.final_norm."}
IN_LAYER = {"attn.c_proj.": "attention.attention.output.", "ln_1.": "attention.norm.", "ln_2.": "mlp.norm.",
            "mlp.c_fc.": "mlp.mlp.up.", "mlp.c_proj.": "mlp.mlp.output."}

def from_checkpoint(model, name):
    name = name.removeprefix("transformer.")
    if name.startswith("h."):
        _, layer, rest = name.split(".", 2)
        kind = rest.rpartition(".")[2]
        if "c_attn" in rest:
            found = numpy.concatenate([model[f"layers.{layer}.attention.attention.{part}.{kind}"][:] for part in "qkv"])
        else:
            found = model[f"layers.{layer}." + next(own + kind for theirs, own in IN_LAYER.items() if rest == theirs + kind)][:]
        return found.T if found.ndim == 2 else found  # their products have the weight the other way round
    return model[next(own + name[len(theirs):] for theirs, own in PLACES.items() if name.startswith(theirs))][:]

raw = open(sys.argv[2], "rb").read()
size = struct.unpack("<Q", raw[:8])[0]
weights = {name: entry for name, entry in json.loads(raw[8:8 + size]).items() if name != "__metadata__"}
report = {"wrong": [], "model": 0, "weights": 0, "listed": [], "found": [], "moved": 0}
with h5py.File(sys.argv[1], "r") as state:
    for name, entry in weights.items():
        first, end = (8 + size + offset for offset in entry["data_offsets"])
        values = numpy.frombuffer(raw[first:end], "<f4").reshape(entry["shape"])
        report["weights"] += values.size
        if not numpy.array_equal(values.view("<u4"), numpy.ascontiguousarray(from_checkpoint(state["model"], name)).view("<u4")):
            report["wrong"].append(name)
    report["step"] = int(state.attrs["step"])
    for row in state["meta/tensors"]:
        path = row["path"].decode()
        tensor = state[path]
        report["listed"].append(path)
        shape = [int(extent) for extent in (row["rows"], row["columns"]) if extent]
        if list(tensor.shape) != shape or tensor.id.get_offset() != row["offset"] or tensor[:].nbytes != row["bytes"]:
            report["wrong"].append(path)
        if path.startswith("/model/"):
            report["model"] += tensor.size
        elif numpy.any(tensor[:]):
            report["moved"] += 1
    def look(path, node):
        if isinstance(node, h5py.Dataset) and path[:5] in ("model", "optim"):
            report["found"].append("/" + path)
    state.visititems(look)
print(json.dumps(report, default=int))
'''


def interpreter():
    for name in (sys.executable, "/usr/bin/python3"):
        if subprocess.run([name, "-c", "import h5py, numpy"], capture_output=True).returncode == 0:
            return name
    return None


class Readers(Runs):

    def test_h5py_reads_every_tensor_and_finds_the_weights_of_the_run(self):
        python = interpreter()
        if python is None:
            self.skipTest("no python3 imports h5py (Debian: python3-h5py)")
        for run, ranks, settings in (("one", 1, ""), ("four", 4, "grid.data=2 grid.tensor=2 train.zero=2"),
                                     ("bf16", 2, "grid.tensor=2 train.precision=bf16")):
            self.trained(run, settings, ranks)
            weights = next((self.root / run).glob("*.safetensors"))
            with tempfile.NamedTemporaryFile("w", suffix=".py") as script:
                script.write(READER)
                script.flush()
                read = subprocess.run(
                    [python, script.name,
                     self.checkpoint(run, STEPS) / "state.h5", weights],
                    capture_output=True,
                    text=True)
            self.assertEqual(read.returncode, 0, read.stderr)
            report = json.loads(read.stdout)
            self.assertEqual(report["wrong"], [], run)
            self.assertEqual(report["model"], report["weights"], run)
            self.assertEqual(sorted(report["listed"]), sorted(report["found"]), run)
            self.assertEqual(len(set(report["listed"])), len(report["listed"]), run)
            self.assertGreater(report["moved"], 20, run)
            self.assertEqual(report["step"], STEPS, run)


if __name__ == "__main__":
    main()
