#!/usr/bin/env python3
"""Measures how long the programs take to start: the commands take turns, and of each the median, min and
max number of milliseconds from spawn to exit are printed, as Markdown for docs/benchmarks.md. "ready" is
what megalith-preprocess logs as its time to startup: from its first statement to the tokenizer being ready.

  bench/start.py --vocab DIR [--bin DIR] [--turns N]

--vocab holds GPT-2's vocab.json and merges.txt. Kept files (docs/formats/tokenizer.md) are made in a folder of
this run."""
import argparse
import os
import pathlib
import shutil
import statistics
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent


def run(command, environment, log):
    """Milliseconds, and those until it was ready, if it says so."""
    to = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    words = [str(word) for word in command]
    start = time.perf_counter()
    pid = os.posix_spawn(words[0], words, environment,
                         file_actions=[(os.POSIX_SPAWN_DUP2, to, 1), (os.POSIX_SPAWN_DUP2, to, 2)])
    _, status = os.waitpid(pid, 0)
    wall = time.perf_counter() - start
    os.close(to)
    text = log.read_text()
    if status != 0:
        sys.exit(f"{' '.join(words)}: status {status}\n{text}")
    ready = [line.split(": ")[1] for line in text.splitlines() if line.startswith("Time to startup: ")]
    return wall * 1e3, float(ready[0]) * 1e3 if ready else None


def shown(values):
    return f"{statistics.median(values):.2f} ({min(values):.2f} – {max(values):.2f})" if values else ""


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--vocab", type=pathlib.Path, required=True)
    parser.add_argument("--bin", type=pathlib.Path, default=ROOT / "build/release/bin")
    parser.add_argument("--turns", type=int, default=100)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        (folder / "line.jsonl").write_text('{"text": "One line."}\n')
        preprocess = [args.bin / "megalith-preprocess", "--input", folder / "line.jsonl", "--output-prefix",
                      folder / "out", "--tokenizer-type", "GPT2BPETokenizer", "--vocab-file",
                      args.vocab / "vocab.json", "--merge-file", args.vocab / "merges.txt", "--append-eod"]
        environment = dict(os.environ, MEGALITH_CACHE_DIR=str(folder / "cache"))
        commands = {
            "`true`": [shutil.which("true")],
            "`megalith-preprocess --version`": [args.bin / "megalith-preprocess", "--version"],
            "`megalith-generate --version`": [args.bin / "megalith-generate", "--version"],
            "`megalith-preprocess`, one line": preprocess,
            "the same, for the first time with these files": preprocess,
        }
        times = {name: ([], []) for name in commands}
        run(preprocess, environment, folder / "log")
        for turn in range(args.turns):
            for name, command in commands.items():
                fresh = "first time" in name
                here = dict(environment, MEGALITH_CACHE_DIR=str(folder / f"cache{turn}")) if fresh else environment
                wall, ready = run(command, here, folder / "log")
                times[name][0].append(wall)
                if ready is not None:
                    times[name][1].append(ready)
    print("| command | ms, to its end | ready after |\n|---|---|---|")
    for name, (wall, ready) in times.items():
        print(f"| {name} | {shown(wall)} | {shown(ready)} |")


if __name__ == "__main__":
    main()
