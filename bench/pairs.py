#!/usr/bin/env python3
"""Compares two builds of Megalith, in alternating pairs: for each row the median of after / before, of wall time and of
processor time. The output is Markdown, ready for docs/benchmarks.md.

  bench/pairs.py --before DIR --after DIR --corpus FILE --vocab DIR [--only ROW,...] [--quick]

--before and --after hold the programs of the two builds; --corpus is JSON lines with the key "text", --vocab holds
GPT-2's vocab.json and merges.txt. A row whose command uses one core runs on the last one. Inputs that the rows need are
made by the programs of --before. About six minutes on two cores with 50 MB; --quick makes one pair of each row."""
import argparse
import os
import pathlib
import shutil
import statistics
import sys
import tempfile
import time

MODEL = ("--num-layers 4 --hidden-size 256 --num-attention-heads 4 --seq-length 256 --max-position-embeddings 256 "
         "--micro-batch-size 4 --lr 1e-3 --eval-iters 0").split()
PLAN = ("--world-size 64 --local-world-size 8 --max-global-batch-size 16 --num-layers 48 --num-attention-heads 64 "
        "--hidden-size 6144 --seq-length 2048").split()
RANKS = "--bf16 --nproc 2 --tensor-model-parallel-size 2 --attention-dropout 0 --hidden-dropout 0".split()


class Times:
    """Seconds of one process: of wall time and of processor time. It is spawned without a copy of Python, which would
    take longer than a start."""

    def __init__(self, command, core, folder):
        log = os.open(folder / "log", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        every = os.sched_getaffinity(0)
        os.sched_setaffinity(0, {max(every)} if core else every)
        start = time.perf_counter()
        pid = os.posix_spawn(command[0], command, os.environ,
                             file_actions=[(os.POSIX_SPAWN_DUP2, log, 1), (os.POSIX_SPAWN_DUP2, log, 2)])
        _, status, usage = os.wait4(pid, 0)
        self.wall, self.processor = time.perf_counter() - start, usage.ru_utime + usage.ru_stime
        os.sched_setaffinity(0, every)
        os.close(log)
        if status != 0:
            sys.exit(f"{' '.join(command)}: status {status}\n{(folder / 'log').read_text()[-2000:]}")


class Pairs:
    def __init__(self, args, folder):
        self.args, self.folder = args, folder

    def run(self, programs, command, core=False):
        program, *words = map(str, command)
        return Times([f"{programs}/megalith-{program}", *words], core, self.folder)

    def row(self, name, pairs, command, core=False):
        """`command` writes "out", if anything; it is removed before each turn."""
        if self.args.only and not any(name.startswith(row) for row in self.args.only.split(",")):
            return
        turns = [(self.args.before, []), (self.args.after, [])]  # the same folder twice shows the noise
        for turn in range(2 if self.args.quick else pairs + 1):  # the first one warms up
            for programs, times in turns[:: 1 if turn % 2 else -1]:
                for old in self.folder.glob("out*"):
                    shutil.rmtree(old) if old.is_dir() else old.unlink()
                times.append(self.run(programs, command, core))
        before, after = (times[1:] for _, times in turns)

        def seconds(times):
            return f"{statistics.median(t.wall for t in times):.4f} ({min(t.wall for t in times):.4f})"

        def ratio(part):
            return f"{statistics.median(part(b) / part(a) for a, b in zip(before, after)):.2f}"

        print(f"| {name} | {len(before)} | {seconds(before)} | {seconds(after)} | {ratio(lambda t: t.wall)} | "
              f"{ratio(lambda t: t.processor)} |", flush=True)

    def rows(self):
        place = self.folder
        vocab = ["--vocab-file", self.args.vocab / "vocab.json", "--merge-file", self.args.vocab / "merges.txt"]
        preprocess = ["preprocess", "--input", self.args.corpus, "--tokenizer-type", "GPT2BPETokenizer", *vocab,
                      "--append-eod", "--output-prefix"]
        train = ["pretrain", *MODEL, *vocab, "--data-path", place / "data_text_document", "--train-iters"]
        self.run(self.args.before, [*preprocess, place / "data"])
        (place / "six").mkdir()
        for copy in range(6):
            for end in ("bin", "idx"):
                shutil.copy(place / f"data_text_document.{end}", place / f"six/{copy}_text_document.{end}")
        self.run(self.args.before, [*train, 1, "--save", place / "checkpoint"])
        self.run(self.args.before, ["convert", place / "checkpoint", "--output", place / "model"])
        print("| row | pairs | seconds before (min) | after (min) | wall time | processor time |\n"
              "|---|--:|--:|--:|--:|--:|")
        for program in ("preprocess", "pretrain", "generate", "autoplan"):
            self.row(f"{program} --version", 1500, [program, "--version"], core=True)
        self.row("preprocess, 1 worker", 20, [*preprocess, place / "out", "--workers", 1], core=True)
        self.row("preprocess, 2 workers", 20, [*preprocess, place / "out", "--workers", 2])
        self.row("merge, 6 datasets", 20, ["merge", "--input", place / "six", "--output-prefix", place / "out"])
        self.row("tokenizer train", 7, ["tokenizer", "train", "--input", self.args.corpus, "--vocab-size",
                                        8000, "--output", place / "out"])
        self.row("pretrain, 8 steps", 9, [*train, 2 if self.args.quick else 8])
        self.row("pretrain bf16, 2 ranks, 6 steps", 9, [*train, 2 if self.args.quick else 6, *RANKS])
        self.row("convert", 40, ["convert", place / "checkpoint", "--output", place / "out"], core=True)
        self.row("generate, 96 tokens", 11, ["generate", "--model", place / "model", "--prompt", "The quick brown fox",
                                             "--max-new-tokens", 96, "--ignore-eos"])
        self.row("autoplan, 22B on 64 devices", 150, ["autoplan", *PLAN], core=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("before", "after", "corpus", "vocab"):
        parser.add_argument(f"--{name}", type=lambda path: pathlib.Path(path).resolve(), required=True)
    parser.add_argument("--only", help="the rows whose names begin so", metavar="ROW,...")
    parser.add_argument("--quick", action="store_true")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        Pairs(args, pathlib.Path(folder)).rows()


if __name__ == "__main__":
    main()
