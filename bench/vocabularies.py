#!/usr/bin/env python3
"""Measures megalith-preprocess beside the tokenizers of others, for each vocabulary and corpus: the programs take turns on
one core, and the medians of user and system time are printed, as Markdown for docs/benchmarks.md.

  bench/vocabularies.py --corpora DIR --vocab DIR [--peers PYTHON] [--turns N] [--only NAME,…] [--bin DIR]
  bench/vocabularies.py --start --vocab DIR [--turns N] [--only NAME,…] [--bin DIR]

Megalith's time is that of its process, from its start to the synced .bin and .idx; what it keeps of a vocabulary is from an
earlier run, its token cache is empty. A peer's time is that of its first pass: JSON lines to ids in memory, in a process
that has started and has loaded the vocabulary (bench/peers.py). Each turn gives a ratio to the fastest peer of that turn;
of these the median is printed. A peer that took more than twice the fastest's time in the first turn has no others. A star
marks a number of ids that is not Megalith's.

--start measures what a process takes for one line: user and system time and memory, at first with a vocabulary of which
nothing is kept, then with what that run has kept.

--corpora holds en.jsonl and multi.jsonl with the key "text", code.jsonl with "content" (those that are there are used).
--vocab holds a folder for each vocabulary, with a tokenizer.json, a SentencePiece .model, a tekken.json, or a file of
tiktoken's ranks beside a tokenizer.json (see peers.py). --peers is a Python with orjson, fastokens, gigatoken, tokenizers
(1.0, a release candidate for which pip needs --pre, is twenty times as fast as 0.23), sentencepiece and tiktoken; a peer
that refuses a vocabulary has no figure. Without it only Megalith is measured."""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

from preprocess import HERE, KEYS, Run, machine

TIKTOKEN_TYPE = ["--tokenizer-type", "TikTokenizer"]


class Vocabulary:
    """A folder's vocabulary: the options that name it here, and for each peer the file that it reads."""

    def __init__(self, folder):
        self.name, self.peers, self.options = folder.name, {}, None
        for path in sorted(path for path in folder.iterdir() if path.is_file()):
            self.take(path)

    def take(self, path):
        with open(path, "rb") as file:
            head = file.read(64)
        if path.name == "tokenizer.json":
            self.options = ["--tokenizer-type", "HuggingFaceTokenizer", "--tokenizer-model", path]
            self.peers.update(dict.fromkeys(("fastokens", "gigatoken", "tokenizers"), path))
        elif path.name.startswith("tekken"):
            self.options = self.options or [*TIKTOKEN_TYPE, "--tokenizer-model", path]
            self.peers["tiktoken"] = path
        elif head.split(b"\n")[0].endswith(b" 0"):
            self.peers["tiktoken"] = path
        elif ".model" in path.name:
            self.options = self.options or ["--tokenizer-type", "GPTSentencePieceTokenizer", "--tokenizer-model", path]
            self.peers.update(dict.fromkeys(("gigatoken", "sentencepiece"), path))


class Bench:
    def __init__(self, options, scratch):
        self.options, self.scratch = options, scratch
        os.environ["MEGALITH_CACHE_DIR"] = str(scratch / "cache")

    def process(self, vocabulary, corpus, key):
        return Run([self.options.bin / "megalith-preprocess", "--input", corpus, "--output-prefix", self.scratch / "out",
                    "--json-keys", key, *vocabulary.options, "--workers", 1], 1)

    def ours(self, vocabulary, corpus, key):
        """User and system time of a run, and its number of ids."""
        run = self.process(vocabulary, corpus, key)
        data = subprocess.run([self.options.bin / "megalith-data", "inspect", "--json", self.scratch / f"out_{key}_document"],
                              capture_output=True)
        for path in self.scratch.glob("out*"):
            path.unlink()
        return run.processor, json.loads(data.stdout)["tokens"]

    def theirs(self, library, path, corpus, key):
        """The same of a peer; nothing if it refuses the vocabulary."""
        done = subprocess.run([self.options.peers, HERE / "peers.py", "pipeline", library, corpus, key, path, "1"],
                              capture_output=True, text=True)
        if done.returncode != 0:
            return None
        said = json.loads(done.stdout.splitlines()[-1])
        return said["passes"][0][1], said["tokens"]

    def turn(self, vocabulary, corpus, key, forward, left_out):
        """The figures of each program. Adds to `left_out` the peers that are not measured again."""
        peers = vocabulary.peers if self.options.peers else {}
        names = ["megalith", *(name for name in peers if name not in left_out)]
        figures = {}
        for name in names if forward else reversed(names):
            figure = (self.ours(vocabulary, corpus, key) if name == "megalith" else
                      self.theirs(name, vocabulary.peers[name], corpus, key))
            if figure is not None:
                figures[name] = figure
        fastest = min((figures[name][0] for name in figures if name != "megalith"), default=0)
        left_out |= {name for name in peers if name not in figures or figures[name][0] > 2 * fastest}
        return figures

    def row(self, vocabulary, corpus, key):
        """Megabytes a second of each program, the median ratio to the fastest peer, and whose number of ids differs."""
        size, left_out = corpus.stat().st_size / 1e6, set()
        self.ours(vocabulary, corpus, key)  # which keeps what is made of the vocabulary
        turns = [self.turn(vocabulary, corpus, key, turn % 2 == 0, left_out) for turn in range(self.options.turns)]
        rates = {name: statistics.median(size / turn[name][0] for turn in turns if name in turn) for name in turns[0]}
        ratios = [min(turn[name][0] for name in turn if name != "megalith") / turn["megalith"][0] for turn in turns
                  if len(turn) > 1]
        other = [name for name, (_, ids) in turns[0].items() if ids != turns[0]["megalith"][1]]
        return rates, ratios, other

    def start_row(self, vocabulary):
        """Milliseconds of user and system time and MiB, without and with what an earlier run has kept."""
        line, key = self.scratch / "line.jsonl", "text"
        line.write_text(json.dumps({key: "One line."}) + "\n")
        first, later = [], []
        for turn in range(self.options.turns):
            os.environ["MEGALITH_CACHE_DIR"] = str(self.scratch / f"cache-{vocabulary.name}-{turn}")
            first.append(self.process(vocabulary, line, key))
            later.append(self.process(vocabulary, line, key))
        return [shown([run.processor * 1e3 for run in runs]) + " | " + shown([run.mib for run in runs])
                for runs in (first, later)]


def shown(values, digits=0):
    return f"{statistics.median(values):.{digits}f} ({min(values):.{digits}f} – {max(values):.{digits}f})"


def print_start(bench, vocabularies):
    print("| vocabulary | first run: ms | MiB | later runs: ms | MiB |\n|---|---|---|---|---|")
    for vocabulary in vocabularies:
        print(f"| {vocabulary.name} | " + " | ".join(bench.start_row(vocabulary)) + " |", flush=True)


def print_rates(bench, vocabularies):
    libraries = ["fastokens", "gigatoken", "tokenizers", "sentencepiece", "tiktoken"]
    print("| vocabulary | corpus | megalith | " + " | ".join(libraries) + " | ratio to the fastest peer |")
    print("|---" * (len(libraries) + 4) + "|")
    for vocabulary in vocabularies:
        for corpus, key in KEYS.items():
            path = bench.options.corpora / f"{corpus}.jsonl"
            if path.exists():
                print(shown_row(vocabulary.name, corpus, *bench.row(vocabulary, path, key), libraries), flush=True)


def shown_row(name, corpus, rates, ratios, other, libraries):
    cells = [f"{rates[library]:.0f}" + ("*" if library in other else "") if library in rates else "" for library in libraries]
    ratio = shown(ratios, 2) if ratios else ""
    return f"| {name} | {corpus} | {rates['megalith']:.0f} | " + " | ".join(cells) + f" | {ratio} |"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--start", action="store_true")
    parser.add_argument("--corpora", type=pathlib.Path)
    parser.add_argument("--vocab", type=pathlib.Path, required=True)
    parser.add_argument("--peers", help="Python with the peers' packages")
    parser.add_argument("--bin", type=pathlib.Path, default=HERE.parent / "build" / "release" / "bin")
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--only", help="names of folders in --vocab")
    options = parser.parse_args()
    if not options.start and not options.corpora:
        parser.error("give --corpora or --start")
    folders = [folder for folder in sorted(options.vocab.iterdir())
               if folder.is_dir() and (not options.only or folder.name in options.only.split(","))]
    vocabularies = [one for one in map(Vocabulary, folders) if one.options]
    print(f"`{' '.join([os.path.relpath(sys.argv[0]), *sys.argv[1:]])}`\n\n{machine()}\n")
    with tempfile.TemporaryDirectory(prefix="megalith-bench-") as scratch:
        (print_start if options.start else print_rates)(Bench(options, pathlib.Path(scratch)), vocabularies)


if __name__ == "__main__":
    main()
