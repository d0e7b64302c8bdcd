#!/usr/bin/env python3
"""Makes the corpora of tests/fuzz that hold torch's files, from small checkpoints.

    python tools/golden/make_fuzz_torch.py tests/convert/goldens/megatron tests/fuzz/corpus

Made with torch 2.15.0.
"""
import argparse
import io
import os
import shutil
import sys
import zipfile

import torch


def main(goldens, out):
    for name in ("torch_file", "pickle", "dist_metadata"):
        shutil.rmtree(f"{out}/{name}", ignore_errors=True)
        os.makedirs(f"{out}/{name}")
    w = torch.arange(6.0).reshape(2, 3)
    state = {"model": {"a": w, "turned": w.t(), "half": w.bfloat16(), "flags": w > 2}, "args": argparse.Namespace(layers=2, name="x"),
             "rng": [(3, (1, 2, 2**70), None)], "extra": io.BytesIO(b"x"), "iteration": 5}
    torch.save(state, f"{out}/torch_file/zip")
    torch.save(state, f"{out}/torch_file/stream", _use_new_zipfile_serialization=False)
    with zipfile.ZipFile(f"{out}/torch_file/zip") as archive:
        name = next(n for n in archive.namelist() if n.endswith("data.pkl"))
        open(f"{out}/pickle/state", "wb").write(archive.read(name))
    with zipfile.ZipFile(f"{goldens}/dist/iter_0000005/common.pt") as archive:
        name = next(n for n in archive.namelist() if n.endswith("data.pkl"))
        open(f"{out}/pickle/args", "wb").write(archive.read(name))
    shutil.copy(f"{goldens}/dist_layers/iter_0000005/.metadata", f"{out}/dist_metadata/layers")


main(*sys.argv[1:])
