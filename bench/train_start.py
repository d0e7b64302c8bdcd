#!/usr/bin/env python3
"""Measures how long megalith-pretrain takes from its start to its first step: GPT-2 of 124 million parameters in bf16, with
random weights and with those of a checkpoint, in turns. Medians, with min and max. Markdown, ready for
docs/benchmarks.md.

  bench/train_start.py [--bin build/release/bin] [--turns 7]"""
import argparse
import json
import pathlib
import statistics
import subprocess
import tempfile
import time

MODEL = ("--num-layers 12 --hidden-size 768 --num-attention-heads 12 --seq-length 64 --max-position-embeddings 64 --vocab-size 50257 "
         "--lr 1e-4 --eval-iters 0 --split 100,0,0 --micro-batch-size 1 --train-iters 1 --bf16")


def seconds_to_training(options, folder, more):
    """To the log's line after which the first step comes; the run then goes to its end."""
    command = f"{options.bin}/megalith-pretrain {MODEL} --data-path {folder}/data_text_document {more}"
    begun, lines = time.monotonic(), []
    process = subprocess.Popen(command.split(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    took = None
    for line in process.stdout:
        lines.append(line)
        if line.startswith("training ..."):
            took = time.monotonic() - begun
    if process.wait() != 0 or took is None:
        raise SystemExit("".join(lines[-5:]))
    return took


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", default="build/release/bin")
    parser.add_argument("--turns", type=int, default=7)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "data.jsonl").write_text("".join(json.dumps({"text": " ".join(str(i + k) for k in range(70))}) + "\n" for i in range(60)))
        subprocess.run(f"{options.bin}/megalith-preprocess --input {folder}/data.jsonl --output-prefix {folder}/data "
                       "--tokenizer-type NullTokenizer --vocab-size 50256".split(), check=True, capture_output=True)
        seconds_to_training(options, folder, f"--save {folder}/checkpoint")
        rows = {"random weights": "", "a checkpoint's": f"--load {folder}/checkpoint"}
        took = {row: [] for row in rows}
        for _ in range(options.turns):
            for row, more in rows.items():
                took[row].append(seconds_to_training(options, folder, more))
    print("| weights | seconds to the first step: median (min - max) |\n|---|---|")
    for row, values in took.items():
        print(f"| {row} | {statistics.median(values):.2f} ({min(values):.2f} - {max(values):.2f}) |")


if __name__ == "__main__":
    main()
