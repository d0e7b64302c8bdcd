#!/usr/bin/env python3
"""Compares `megalith-data cache` with the cache that megatron-core 0.16.1 writes for a blend of many datasets, and lets
megatron-core read ours: it finds every index, builds none, and draws the same samples. CPU only.

    BUILD=build/release python tools/peers/compare_index_cache.py [--datasets 50]

Needs megatron-core 0.16.1, numpy and torch (tools/golden/make_index_caches.py has the versions)."""
import argparse
import os
import pathlib
import random
import shlex
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tools/golden"))
import make_index_caches as megatron  # noqa: E402
import numpy  # noqa: E402
import torch  # noqa: E402
from megatron.core.datasets import helpers  # noqa: E402
from megatron.core.datasets.indexed_dataset import IndexedDatasetBuilder  # noqa: E402

BIN = pathlib.Path(os.environ.get("BUILD", ROOT / "build/release")) / "bin"
RUN = ("--seq-length 16 --split 80,10,10 --train-iters 3000 --global-batch-size 16 --eval-iters 2 --eval-interval 100 --seed 77 "
       "--tokenizer-type NullTokenizer --vocab-size 600 --mid-level-dataset-surplus 0.05")


def make_datasets(folder, count):
    rng = random.Random(5)
    for number in range(count):
        builder = IndexedDatasetBuilder(str(folder / f"{number}.bin"), dtype=numpy.uint16)
        for _ in range(rng.randrange(60, 300)):
            length = rng.randrange(1, 90)
            builder.add_document(torch.tensor([rng.randrange(600) for _ in range(length)]), [length])
        builder.finalize(str(folder / f"{number}.idx"))


def refuse(*_, **__):
    raise AssertionError("megatron-core built an index that is in the cache")


def bytes_of(folder):
    return {file.name: file.read_bytes() for file in folder.iterdir()}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--datasets", type=int, default=50)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        make_datasets(folder, options.datasets)
        torch.distributed.init_process_group("gloo", init_method=f"file://{folder}/store", rank=0, world_size=1)
        rng = random.Random(6)
        weighted = " ".join(f"{rng.random() + 0.01} {folder}/{i}" for i in range(options.datasets))
        plain = " ".join(f"{folder}/{i}" for i in range(options.datasets - 1 + options.datasets % 2))
        build = {one: getattr(helpers, one) for one in ("build_sample_idx", "build_blending_indices", "build_exhaustive_blending_indices")}
        for row, path in (("weights", weighted), ("no weights", plain)):
            words = f"--data-path {path} {RUN}"
            theirs, ours = folder / f"theirs {row}", folder / f"ours {row}"
            args = megatron.parsed(words)
            expected = megatron.write(args, str(theirs))
            subprocess.run([BIN / "megalith-data", "cache", *shlex.split(words), "--data-cache-path", ours], check=True)
            if bytes_of(theirs) != bytes_of(ours):
                sys.exit(f"{row}: the caches differ")
            for one in build:
                setattr(helpers, one, refuse)
            found = megatron.write(args, str(ours))
            for one, function in build.items():
                setattr(helpers, one, function)
            for split, reference in zip(found, expected):
                for sample in range(0, len(reference), max(1, len(reference) // 100)):
                    if not torch.equal(split[sample]["tokens"], reference[sample]["tokens"]):
                        sys.exit(f"{row}: sample {sample} differs")
            print(f"{row}: {len(bytes_of(ours))} files of {options.datasets} datasets equal; read without building")


if __name__ == "__main__":
    main()
