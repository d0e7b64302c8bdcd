#!/usr/bin/env python3
"""Measures `megalith-data cache`, and beside it megatron-core 0.16.1 writing the same files: rows of documents and samples of
one dataset, in turns, and a blend of thousands of datasets. Seconds, ratio, and the most memory. Markdown, ready for
docs/benchmarks.md.

  bench/index_cache.py [--bin build/release/bin] [--peer PYTHON] [--turns 3] [--only ROW,...] [--datasets 10000] [--folder DIR]

--peer is a Python with megatron-core 0.16.1, numpy and torch: its build is timed from the call of the builder to its end, and
as a whole process. The .bin files are holes: an index is made of lengths only. The blend writes 5.8 GB into --folder."""
import argparse
import hashlib
import os
import pathlib
import random
import shutil
import statistics
import struct
import subprocess
import sys
import tempfile
import time
from array import array

ROOT = pathlib.Path(__file__).resolve().parent.parent
# name: documents, tokens of each (from, to), samples, seq-length
ROWS = {"2M documents, 3M samples": (2_000_000, (60, 240), 3_000_000, 128),
        "2M documents, 30M samples": (2_000_000, (60, 240), 30_000_000, 128),
        "20M documents, 30M samples": (20_000_000, (60, 240), 30_000_000, 128)}
PEER = r"""
import logging, os, sys, time, types, warnings
os.environ["CUDA_VISIBLE_DEVICES"] = ""
warnings.filterwarnings("ignore")
logging.disable(logging.CRITICAL)
import megatron.core.tokenizers.text.text_tokenizer as text_tokenizer
from megatron.core.datasets.blended_megatron_dataset_builder import BlendedMegatronDatasetBuilder
from megatron.core.datasets.gpt_dataset import GPTDataset, GPTDatasetConfig
from megatron.core.tokenizers.text.utils.build_tokenizer import build_tokenizer
prefix, samples, length, cache = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
tokenizer = build_tokenizer(types.SimpleNamespace(tokenizer_type="NullTokenizer", vocab_size=600))
config = GPTDatasetConfig(random_seed=1234, sequence_length=length, blend=([prefix], None), split="1,0,0", path_to_cache=cache,
                          tokenizer=tokenizer, reset_position_ids=False, reset_attention_mask=False, eod_mask_loss=False,
                          create_attention_mask=False)
begin, processor = time.perf_counter(), time.process_time()
BlendedMegatronDatasetBuilder(GPTDataset, [samples, 0, 0], lambda: True, config).build()
print("built", time.perf_counter() - begin, time.process_time() - processor)
"""


def write_dataset(prefix, lengths):
    """An index, and a .bin that is a hole of the right size; tokens of two bytes."""
    pointers, at = array("q"), 0
    for length in lengths:
        pointers.append(at)
        at += 2 * length
    with open(f"{prefix}.idx", "wb") as idx:
        idx.write(b"MMIDIDX\0\0" + struct.pack("<QBQQ", 1, 8, len(lengths), len(lengths) + 1))
        lengths.tofile(idx)
        pointers.tofile(idx)
        array("q", range(len(lengths) + 1)).tofile(idx)
    with open(f"{prefix}.bin", "wb") as data:
        data.truncate(at)


def run(command):
    """Seconds, the most memory in GB, seconds of processors, and the output."""
    begin = time.perf_counter()
    process = subprocess.Popen([str(word) for word in command], stdout=subprocess.PIPE, text=True)
    text = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    if status != 0:
        sys.exit(f"{' '.join(map(str, command))}: status {status}")
    return time.perf_counter() - begin, usage.ru_maxrss / 1e6, usage.ru_utime + usage.ru_stime, text


def digests(folder):
    return {file.name: hashlib.md5(file.read_bytes()).hexdigest() for file in folder.iterdir()}


class Bench:
    def __init__(self, options, folder):
        self.options, self.folder = options, folder

    def ours(self, cache, words):
        return run([self.options.bin / "megalith-data", "cache", *words, "--split", "1,0,0", "--eval-iters", 0, "--tokenizer-type",
                    "NullTokenizer", "--vocab-size", 600, "--data-cache-path", cache])

    def one(self, name):
        documents, (least, most), samples, length = ROWS[name]
        rng = random.Random(1)
        prefix = self.folder / "one"
        write_dataset(prefix, array("i", (rng.randrange(least, most) for _ in range(documents))))
        ours, peer = [], []
        for turn in range(self.options.turns):
            caches = [self.folder / "ours", self.folder / "theirs"]
            ours.append(self.ours(caches[0], ["--data-path", prefix, "--seq-length", length, "--train-samples", samples,
                                              "--global-batch-size", 1]))
            if self.options.peer:
                took, memory, _, text = run([self.options.peer, "-c", PEER, prefix, samples, length, caches[1]])
                peer.append((float(text.split()[-2]), memory, float(text.split()[-1]), took))
                if turn == 0 and digests(caches[0]) != digests(caches[1]):
                    sys.exit(f"{name}: the caches differ")
            for cache in caches:
                shutil.rmtree(cache, ignore_errors=True)
        row = [name, f"{statistics.median(o[0] for o in ours):.2f}", f"{statistics.median(o[2] for o in ours):.2f}"]
        if peer:
            row += [f"{statistics.median(p[0] for p in peer):.2f}; {statistics.median(p[3] for p in peer):.2f}",
                    f"{statistics.median(p[0] / o[0] for o, p in zip(ours, peer)):.2f}",
                    f"{statistics.median(p[2] / o[2] for o, p in zip(ours, peer)):.2f}"]
        else:
            row += ["", "", ""]
        row.append(f"{max(o[1] for o in ours):.2f}" + (f" / {max(p[1] for p in peer):.2f}" if peer else ""))
        print("| " + " | ".join(row) + " |", flush=True)

    def blend(self):
        count, length = self.options.datasets, 20_000
        rng = random.Random(2)
        prefixes, samples = [], 0
        for number in range(count):
            prefixes.append(str(self.folder / str(number)))
            documents = rng.randrange(8_000, 12_000)
            samples += (documents * length - 1) // 8192
            write_dataset(prefixes[-1], array("i", [length] * documents))
        paths = self.folder / "paths"
        paths.write_text("\n".join(prefixes))
        took, memory, processor, _ = self.ours(self.folder / "cache", ["--data-args-path", paths, "--seq-length", 8192, "--train-samples",
                                                               samples, "--global-batch-size", 1024])
        written = sum(file.stat().st_size for file in (self.folder / "cache").iterdir())
        print(f"| {count} datasets, {samples * 8192:.2g} tokens, {written / 1e9:.1f} GB written | {took:.2f} | {processor:.2f} | | | | "
              f"{memory:.2f} |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", type=pathlib.Path, default=ROOT / "build/release/bin")
    parser.add_argument("--peer", type=pathlib.Path)
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--datasets", type=int, default=10_000)
    parser.add_argument("--only", help="the rows whose names begin so", metavar="ROW,...")
    parser.add_argument("--folder", help="where datasets and caches are made, and removed at the end")
    options = parser.parse_args()
    wanted = lambda name: not options.only or any(name.startswith(row) for row in options.only.split(","))
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        bench = Bench(options, pathlib.Path(folder))
        print("| index | seconds | of processors | megatron-core's build; its process | ratio to the build | of processors | "
              "GB of memory, ours / theirs |\n|---|--:|--:|--:|--:|--:|--:|", flush=True)
        for name in ROWS:
            if wanted(name):
                bench.one(name)
        if wanted("blend"):
            bench.blend()


if __name__ == "__main__":
    main()
