#!/usr/bin/env python3
"""Measures what users wait for when megalith-preprocess reads inputs of other shapes than one plain file: compressed files,
folders of small files, many keys, lists of sentences. Each row has Megalith and a peer that gives the same dataset; both take
turns, and the medians of wall time, of processor time and of the largest process's memory are printed, and the same at a
quarter and a half of the size, which shows how they grow. The output is Markdown, ready for docs/benchmarks.md.

  bench/waits.py --corpus EN.jsonl --vocab DIR [--only small,xz] [--megabytes 150] [--pairs 5] [--bin DIR]

--corpus has the key "text"; --vocab holds GPT-2's vocab.json and merges.txt. Needs xz, bzip2, gzip and zstd; pbzip2 and pigz
where they are there, else bzip2 and gzip stand for them, which the row says. The datasets of both are compared. About 15
minutes on two idle cores with 150 MB."""
import argparse
import json
import os
import pathlib
import shlex
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from preprocess import machine  # noqa: E402

MANY = 16  # compressed files of a row
KEYS = 100


class Turn:
    """A shell command, with the time and the memory of all that it starts."""

    def __init__(self, command, folder):
        log = folder / "log"
        start = time.perf_counter()
        with open(log, "wb") as out:
            child = subprocess.Popen(["bash", "-o", "pipefail", "-c", command], stdout=out, stderr=out)
            _, status, usage = os.wait4(child.pid, 0)
        self.wall = time.perf_counter() - start
        self.processor = usage.ru_utime + usage.ru_stime
        self.memory = usage.ru_maxrss * 1024
        if status != 0:
            sys.exit(f"{command}: status {status}\n{log.read_text(errors='replace')[-2000:]}")


class Rows:
    def __init__(self, options, folder):
        self.options, self.folder = options, folder
        self.program = (f"{options.bin / 'megalith-preprocess'} --vocab-file {options.vocab / 'vocab.json'} --merge-file "
                        f"{options.vocab / 'merges.txt'} --tokenizer-type GPT2BPETokenizer --append-eod --quiet")

    def preprocess(self, inputs, output="ours", workers=2, keys="text"):
        return f"{self.program} --workers {workers} --input {inputs} --json-keys {keys} --output-prefix {self.folder}/{output}"

    def documents(self, megabytes):
        """The first documents of the corpus, as texts."""
        held = 0
        with open(self.options.corpus, "rb") as lines:
            for line in lines:
                yield json.loads(line)["text"]
                held += len(line)
                if held > megabytes * 1e6:
                    return

    def write(self, path, records):
        with open(path, "w", encoding="utf-8") as out:
            for record in records:
                out.write(json.dumps(record, ensure_ascii=False) + "\n")
        return path

    def plain(self, megabytes):
        return self.write(self.folder / "plain.jsonl", ({"text": text} for text in self.documents(megabytes)))

    def parts(self, megabytes, tool):
        """MANY compressed files."""
        documents = list(self.documents(megabytes))
        size = -(-len(documents) // MANY)
        for part in range(MANY):
            path = self.folder / f"part{part:02}.jsonl"
            self.write(path, ({"text": text} for text in documents[part * size:(part + 1) * size]))
            subprocess.run(f"{tool} -c {path} > {path}.z && rm {path}", shell=True, check=True)
        return [f"{self.folder}/part{part:02}.jsonl.z" for part in range(MANY)]

    # --- rows: each gives our command, the peer's and what the peer is; both write the same dataset, unless the last says otherwise

    def small(self, megabytes):
        inputs = self.folder / "small"
        inputs.mkdir()
        number, piece = 0, 700
        for text in self.documents(megabytes):
            for begin in range(0, len(text), piece):
                (inputs / f"{number:07}.json").write_text(json.dumps({"text": text[begin:begin + piece]}) + "\n")
                number += 1
        pipe = f"find {inputs} -type f | sort | xargs cat | {self.preprocess('-', 'peer')}"
        return f"{self.preprocess(inputs)}", pipe, f"{number:,} files: `find, sort, xargs cat, P -`", True

    def small_resumed(self, megabytes):
        ours, peer, what, same = self.small(megabytes)
        return ours + " --resume", peer, what, same

    def many(self, tool, megabytes):
        """Two processes, each with one worker and half of the files."""
        files = self.parts(megabytes, tool)
        halves = [" ".join(files[:MANY // 2]), " ".join(files[MANY // 2:])]
        both = [self.preprocess(half, f"half{number}", 1) for number, half in enumerate(halves)]
        return self.preprocess(" ".join(files)), f"{both[0]} & {both[1]} && wait $!", f"two processes for {MANY} files", False

    def one(self, tool, unpack, megabytes):
        path = self.plain(megabytes)
        subprocess.run(f"{tool} -c {path} > {path}.z", shell=True, check=True)
        return self.preprocess(f"{path}.z"), f"{unpack} < {path}.z | {self.preprocess('-', 'peer')}", f"`{unpack}, P -`", True

    def keys(self, megabytes):
        """The same texts, cut in KEYS parts of one document each, and as one."""
        many, single = self.folder / "many.jsonl", self.folder / "single.jsonl"
        with open(many, "w", encoding="utf-8") as of_many, open(single, "w", encoding="utf-8") as of_one:
            text = ""
            for more in self.documents(megabytes):
                text += more + " "
                while len(text) >= KEYS * 90:
                    piece, text = text[:KEYS * 90], text[KEYS * 90:]
                    of_one.write(json.dumps({"text": piece}, ensure_ascii=False) + "\n")
                    of_many.write(json.dumps({f"k{i}": piece[i * 90:(i + 1) * 90] for i in range(KEYS)}, ensure_ascii=False) + "\n")
        keys = " ".join(f"k{i}" for i in range(KEYS))
        return self.preprocess(many, keys=keys), self.preprocess(single, "peer"), "one key", False

    def lists(self, megabytes):
        """Lists of sentences, and the same texts as strings."""
        texts = list(self.documents(megabytes))
        as_lists = self.write(self.folder / "lists.jsonl", ({"text": text.replace(". ", ".\0 ").split("\0")} for text in texts))
        return self.preprocess(as_lists), self.preprocess(self.plain(megabytes), "peer"), "plain strings", False

    def all(self):
        def tool(wanted, instead):
            return wanted if shutil.which(wanted.split()[0]) else instead
        blocks = "xz -1 -T2 --block-size=8MiB"
        return {"small": self.small, "small-resume": self.small_resumed,
                **{f"16-{name}": (lambda megabytes, name=name: self.many(name, megabytes)) for name in ("xz -1", "bzip2", "gzip", "zstd -q")},
                "xz": lambda m: self.one(blocks, "xz -T2 -dc", m),
                "bz2": lambda m: self.one("bzip2", tool("pbzip2 -p2 -dc", "bzip2 -dc"), m),
                "gz": lambda m: self.one("gzip", tool("pigz -dc", "gzip -dc"), m),
                "keys": self.keys, "lists": self.lists}

    def same(self):
        for end in (".bin", ".idx"):
            ours, peers = (self.folder / f"{name}_text_document{end}" for name in ("ours", "peer"))
            if ours.read_bytes() != peers.read_bytes():
                sys.exit(f"{ours} and {peers} differ")

    def measure(self, make, megabytes):
        for old in self.folder.iterdir():
            shutil.rmtree(old) if old.is_dir() else old.unlink()
        ours, peer, what, same = make(megabytes)
        turns = {ours: [], peer: []}
        for turn in range(self.options.pairs + 1):  # the first warms up
            for command in (ours, peer)[::1 if turn % 2 else -1]:
                turns[command].append(Turn(command, self.folder))
        if same:
            self.same()
        return what, turns[ours][1:], turns[peer][1:]


def median(turns, part):
    return statistics.median(getattr(turn, part) for turn in turns)


def growth(sizes, side):
    return ", ".join(f"{median(found[side], 'wall'):.2f}" for found in sizes)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--corpus", type=pathlib.Path, required=True)
    parser.add_argument("--vocab", type=pathlib.Path, required=True)
    parser.add_argument("--bin", type=pathlib.Path, default=pathlib.Path("build/release/bin"))
    parser.add_argument("--only", default="")
    parser.add_argument("--megabytes", type=float, default=150)
    parser.add_argument("--pairs", type=int, default=5)
    options = parser.parse_args()
    options.bin = options.bin.resolve()
    print(f"{machine()}\n\n| row | peer | ours, s | peer, s | peer / ours | processor | memory, MiB | ours at ¼, ½, 1 | peer |")
    print("|" + "---|" * 9)
    with tempfile.TemporaryDirectory(prefix="megalith-waits-") as name:
        rows = Rows(options, pathlib.Path(shlex.quote(name)))
        for row, make in rows.all().items():
            if options.only and row.split()[0] not in options.only.split(","):
                continue
            sizes = [rows.measure(make, options.megabytes * part) for part in (0.25, 0.5, 1)]
            what, ours, peer = sizes[-1]
            ratio = statistics.median(b.wall / a.wall for a, b in zip(ours, peer))
            processor = statistics.median(b.processor / a.processor for a, b in zip(ours, peer))
            print(f"| {row} | {what} | {median(ours, 'wall'):.2f} | {median(peer, 'wall'):.2f} | {ratio:.2f} | {processor:.2f} | "
                  f"{median(ours, 'memory') / 2**20:.0f} / {median(peer, 'memory') / 2**20:.0f} | {growth(sizes, 1)} | "
                  f"{growth(sizes, 2)} |", flush=True)


if __name__ == "__main__":
    main()
