#!/usr/bin/env python3
"""Measures what a checkpoint costs a run: GPT-2 of 124 million parameters, one rank, a save every few steps, written while
training waits and while it continues, in turns. The stall is from the log's line that a save begins to the one that says that
training continues; what the writing then costs the steps beside it is their time against that of the other steps. Medians,
with min and max. Markdown, ready for docs/benchmarks.md.

  bench/saves.py [--bin build/release/bin] [--turns 3] [--saves 3] [--bf16] [--folder DIR]"""
import argparse
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

MODEL = ("--num-layers 12 --hidden-size 768 --num-attention-heads 12 --seq-length 256 --max-position-embeddings 256 "
         "--vocab-size 50257 --lr 1e-4 --eval-iters 0 --split 100,0,0 --micro-batch-size 2 --log-interval 1 --keep-last 1")
BETWEEN = 6  # steps from one save to the next: those after a save's write has ended are the others


def run(options, folder, mode):
    """Stalls, times until the checkpoint was complete, and times of the steps just after a save and of the last ones before one."""
    log, out = folder / "log.jsonl", folder / "save"
    log.unlink(missing_ok=True)
    command = (f"{options.bin}/megalith-pretrain {MODEL} {'--bf16' if options.bf16 else ''} {mode} --data-path {folder}/data_text_document "
               f"--train-iters {BETWEEN * (options.saves + 1)} --save {out} --save-interval {BETWEEN} --log-json {log}")
    process = subprocess.Popen(command.split(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    begun, stalls, complete = 0.0, [], []
    tail = []
    for line in process.stdout:
        now = time.monotonic()
        tail = tail[-9:] + [line]
        if line.startswith("saving checkpoint"):
            begun = now
        elif line.startswith("  copied"):
            stalls.append(now - begun)
        elif line.startswith("  successfully saved"):
            complete.append(now - begun)
    if process.wait() != 0:
        sys.exit(f"{command}\n{''.join(tail)}")
    steps = [json.loads(line) for line in log.open()]
    times = {step["iteration"]: step["ms"] / 1000 for step in steps if step["type"] == "train"}
    after = [times[i] for i in times if i > BETWEEN and i % BETWEEN == 1]
    others = [times[i] for i in times if i > BETWEEN and i % BETWEEN in (BETWEEN - 1, 0)]
    subprocess.run(["rm", "-rf", out], check=True)
    return (stalls or complete)[:-1], complete[:-1], after, others


def text(values):
    return f"{statistics.median(values):.2f} s ({min(values):.2f} to {max(values):.2f})"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", default="build/release/bin")
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--saves", type=int, default=3)
    parser.add_argument("--bf16", action="store_true")
    parser.add_argument("--folder", help="where checkpoints are written, on the disk that is asked for")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.folder) as name:
        folder = pathlib.Path(name)
        ids = " ".join(str(i * 7919 % 50257) for i in range(1024))
        (folder / "text.jsonl").write_text((json.dumps({"text": ids}) + "\n") * 64)
        subprocess.run([f"{options.bin}/megalith-preprocess", "--input", folder / "text.jsonl", "--output-prefix", folder / "data",
                        "--tokenizer-type", "NullTokenizer", "--vocab-size", "50257"], check=True, capture_output=True)
        rows = {"--no-async-save": [[], [], [], []], "--async-save": [[], [], [], []]}
        for _ in range(options.turns):
            for mode, columns in rows.items():
                for column, values in zip(columns, run(options, folder, mode)):
                    column += values
    print("| | training pauses | checkpoint complete after | step after a save | other steps |\n|---|---|---|---|---|")
    for mode, columns in rows.items():
        print(f"| `{mode}` | " + " | ".join(text(column) for column in columns) + " |")


if __name__ == "__main__":
    main()
