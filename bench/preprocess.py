#!/usr/bin/env python3
"""Measures Megalith's preprocessing, tokenizer training and merging against their peers, in one run: the
programs take turns, and of each the median, min and max of its turns are printed, with the memory that
its process had at most (getrusage). The output is Markdown, ready for docs/benchmarks.md.

  bench/preprocess.py --corpora DIR --vocab DIR [--peers PYTHON] [--quick] [--only preprocess,large,train,merge]

--corpora holds en.jsonl and multi.jsonl with the key "text", code.jsonl with "content" (those that are there are
used); --vocab holds vocab.json, merges.txt and gpt2_tokenizer.json (the same as one file, for peers). --peers is a
Python that has what bench/peers.py names; without it only Megalith is measured. About twelve minutes on two
cores; --quick takes a third of the turns and smaller inputs."""
import argparse
import concurrent.futures
import json
import os
import pathlib
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
KEYS = {"en": "text", "code": "content", "multi": "text"}


class Run:
    """One process: seconds of wall time and of processor time, max memory, and what it printed. The system
    counts this process's own memory too, up to the exec: it is kept below any that is measured. The cores are set for
    the thread that starts it, which it inherits: with Python's preexec_fn its beginning would be a copy of this
    process, which takes 3 ms more."""

    def __init__(self, command, cores=None, first_core=0):
        every = os.sched_getaffinity(0)
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            os.sched_setaffinity(0, sorted(every)[first_core:first_core + cores] if cores else every)
            try:
                start = time.perf_counter()
                process = subprocess.Popen([str(word) for word in command], stdout=out, stderr=err)
                _, status, usage = os.wait4(process.pid, 0)
                self.wall = time.perf_counter() - start
            finally:
                os.sched_setaffinity(0, every)
            process.returncode = os.waitstatus_to_exitcode(status)
            out.seek(0)
            err.seek(0)
            if process.returncode != 0:
                sys.exit(f"{' '.join(map(str, command))}: exit {process.returncode}\n{err.read().decode()[-2000:]}")
            self.text = out.read().decode()
        self.processor = usage.ru_utime + usage.ru_stime
        self.mib = usage.ru_maxrss / 1024

    def json(self):
        return json.loads(self.text.splitlines()[-1])


class Table:
    """Programs that take turns on one input."""

    def __init__(self, title, unit_of_work=None):
        self.title, self.work, self.turns = title, unit_of_work, {}

    def add(self, name, run, seconds=None, processor=None):
        """A turn; of a peer, the seconds that it measured itself."""
        self.turns.setdefault(name, []).append((seconds or run.wall, processor or run.processor, run.mib))

    def median(self, name, column=0):
        return statistics.median(turn[column] for turn in self.turns[name])

    def ratio(self, name, to):
        """How often `name` is done while `to` is done once, turn by turn: the machine's speed changes meanwhile. And
        that of the fastest turn of each, which other work of the machine disturbed least."""
        turns = [one[0] / other[0] for one, other in zip(self.turns[to], self.turns[name])]
        fastest = min(turn[0] for turn in self.turns[to]) / min(turn[0] for turn in self.turns[name])
        return (f"{statistics.median(turns):.2f} ({min(turns):.2f} – {max(turns):.2f}, {len(turns)} turns; of the "
                f"fastest turns {fastest:.2f})")

    def print(self, against=None):
        rate = self.work is not None
        print(f"\n**{self.title}**\n")
        print("| program | seconds: median (min – max) |" + (" MB/s |" if rate else "") +
              " processor s | memory MiB |" + (" relative speed |" if against else ""))
        print("|---|---|" + ("---|" if rate else "") + "---|---|" + ("---|" if against else ""))
        for name, turns in self.turns.items():
            seconds = [turn[0] for turn in turns]
            row = f"| {name} | {self.median(name):.3f} ({min(seconds):.3f} – {max(seconds):.3f}) |"
            if rate:
                row += f" {self.work / 1e6 / self.median(name):.0f} |"
            row += f" {self.median(name, 1):.2f} | {max(turn[2] for turn in turns):.0f} |"
            if against:
                row += f" {self.median(against) / self.median(name):.2f} |"
            print(row)
        sys.stdout.flush()


class Bench:
    def __init__(self, options, scratch):
        self.options, self.scratch = options, scratch
        self.turns = 1 if options.quick else 3
        self.bin = pathlib.Path(options.bin)
        self.vocab = pathlib.Path(options.vocab)
        self.corpora = {name: pathlib.Path(options.corpora) / f"{name}.jsonl" for name in KEYS}
        self.corpora = {name: path for name, path in self.corpora.items() if path.exists()}
        if not self.corpora:
            sys.exit(f"{options.corpora}: holds none of {', '.join(name + '.jsonl' for name in KEYS)}")

    def peer(self, *arguments):
        return Run([self.options.peers, HERE / "peers.py", *arguments])

    @staticmethod
    def bring_to_memory(path):
        """Each program begins with its input in the page cache, from which this machine's host takes pages."""
        block = bytearray(1 << 20)
        with open(path, "rb", buffering=0) as file:
            while file.readinto(block):
                pass

    def preprocess(self, path, key, workers, prefix, first_core=0):
        return Run([self.bin / "megalith-preprocess", "--input", path, "--output-prefix", prefix, "--json-keys", key,
                    "--tokenizer-type", "GPT2BPETokenizer", "--vocab-file", self.vocab / "vocab.json", "--merge-file",
                    self.vocab / "merges.txt", "--append-eod", "--workers", workers], workers, first_core)

    ONE, TWO, APART = ("megalith-preprocess, 1 core, to disk", "megalith-preprocess, 2 cores, to disk",
                       "of two such processes at once, a core each: half of the slower one's time")

    def run_apart(self, path, key):
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            both = [pool.submit(self.preprocess, path, key, 1, self.scratch / f"out{core}", core) for core in (0, 1)]
            return max((one.result() for one in both), key=lambda run: run.wall)

    def add_preprocess(self, table, path, key, turn):
        """A turn on one core and on two; and two processes at once that share nothing but the machine: no way of
        sharing the work between two cores of it can be faster than what these two do. The next turn is the other way
        round and with the other core as the one, for cores are not alike (one has the disk's interrupts), and a
        program finds memory as the one before it left it."""
        out = self.scratch / "out"
        runs = {self.ONE: lambda: self.preprocess(path, key, 1, out, turn % 2),
                self.TWO: lambda: self.preprocess(path, key, 2, out),
                self.APART: lambda: self.run_apart(path, key)}
        for name in list(runs) if turn % 2 == 0 else reversed(runs):
            self.bring_to_memory(path)
            run = runs[name]()
            table.add(name, run, run.wall / (2 if name == self.APART else 1))
            self.clean("out*_*")

    def print_preprocess(self, table):
        table.print(against=self.ONE)
        print(f"\nOne process on two cores does {table.ratio(self.TWO, self.ONE)} times the work of one core; "
              f"two processes, a core each, do {table.ratio(self.APART, self.ONE)} times.")

    def clean(self, pattern):
        """What the disk does to forget a file is not the next program's work."""
        for path in self.scratch.glob(pattern):
            path.unlink()
        os.sync()

    def corpus_table(self, name, path):
        """Start of the process to .bin and .idx synced, against ids in memory from a process that has started, which
        takes longer and so gets fewer turns."""
        table, key = Table(f"{name}: {path.stat().st_size / 1e6:.0f} MB", path.stat().st_size), KEYS[name]
        for turn in range(14 * self.turns):
            self.add_preprocess(table, path, key, turn)
            for library in self.pipelines(turn % 14 == 0):
                run, first, best = self.peer_pipeline(library, path, key)
                table.add(f"orjson + {library}, in memory, first pass", run, *first)
                table.add(f"orjson + {library}, in memory, best of three passes", run, *best)
        self.print_preprocess(table)

    def pipelines(self, due):
        return ("fastokens", "gigatoken") if self.options.peers and due else ()

    def peer_pipeline(self, library, path, key):
        """The process, and seconds of wall and processor time of its first pass and of the best of three."""
        self.bring_to_memory(path)
        run = self.peer("pipeline", library, path, key, self.vocab / "gpt2_tokenizer.json")
        return run, *run.json()["passes"]

    def bench_preprocess(self):
        print("\n### Preprocess: loose JSON to .bin and .idx")
        for name, path in self.corpora.items():
            if self.options.quick:
                path = self.head(path, 20e6)
            self.corpus_table(name, path)

    def head(self, path, size):
        """The first lines of a corpus, about `size` bytes."""
        short = self.scratch / path.name
        with open(path, "rb") as lines, open(short, "wb") as out:
            for line in lines:
                if out.tell() > size:
                    break
                out.write(line)
        return short

    def bench_large(self):
        print("\n### Preprocess: a large file (the corpus repeated in changing order, each copy with new first words)")
        for name, path in list(self.corpora.items())[:1 if self.options.quick else 3]:
            large = self.scratch / f"large_{path.name}"  # made by another process, for this one must stay small
            subprocess.run([sys.executable, HERE / "peers.py", "large", path, KEYS[name], large,
                            "200e6" if self.options.quick else "1e9"], check=True, stdout=subprocess.DEVNULL)
            table = Table(f"{name}: {large.stat().st_size / 1e6:.0f} MB", large.stat().st_size)
            for turn in range(2 * self.turns):
                self.add_preprocess(table, large, KEYS[name], turn)
                for library in self.pipelines(turn % 2 == 0):
                    run, _, best = self.peer_pipeline(library, path, KEYS[name])
                    times = large.stat().st_size / path.stat().st_size
                    table.add(f"orjson + {library}, in memory, at its best of three passes over the corpus", run,
                              *(times * seconds for seconds in best))
            self.print_preprocess(table)
            large.unlink()

    def bench_train(self):
        name, path = next(iter(self.corpora.items()))
        if self.options.quick:
            path = self.head(path, 20e6)
        size = path.stat().st_size
        print("\n### Tokenizer training: byte-level BPE of 32,000 ids, all cores")
        table = Table(f"{name}: {size / 1e6:.0f} MB", size)
        for _ in range(min(self.turns, 2)):
            run = Run([self.bin / "megalith-tokenizer", "train", "--input", path, "--json-keys", KEYS[name], "--vocab-size",
                       32000, "--output", self.scratch / "tokenizer"])
            table.add("megalith-tokenizer train", run)
            for library in ("rustbpe", "hf") if self.options.peers else ():
                run = self.peer("train", library, path, KEYS[name], 32000)
                table.add({"rustbpe": "rustbpe", "hf": "Hugging Face tokenizers"}[library], run, run.json()["seconds"])
        table.print(against="megalith-tokenizer train")

    def merge_table(self, title, folder, turns, megatron_turns):
        table = Table(title, sum(path.stat().st_size for path in folder.iterdir()))
        for turn in range(turns):
            run = Run([self.bin / "megalith-merge", "--input", folder, "--output-prefix", self.scratch / "joined"])
            table.add("megalith-merge, synced", run)
            self.clean("joined*")
            for endings, what in ((("bin",), ".bin"), (("bin", "idx"), ".bin and .idx")):
                words = " && ".join(f'cat "$1"/*.{e} > "$2".{e} && sync "$2".{e}' for e in endings)
                run = Run(["sh", "-c", words, "sh", folder, self.scratch / "joined"])
                table.add(f"cat and sync of the {what} files", run)
                self.clean("joined*")
            if self.options.peers and turn < megatron_turns:
                run = self.peer("merge", folder, self.scratch / "joined")
                table.add("Megatron's merge_datasets.py, not synced", run, run.json()["seconds"])
                self.clean("joined*")
        table.print(against="megalith-merge, synced")

    def bench_merge(self):
        print("\n### Merge")
        folder = self.scratch / "shards"
        folder.mkdir()
        name, path = next(iter(self.corpora.items()))
        if self.options.quick:
            path = self.head(path, 20e6)
        self.preprocess(path, KEYS[name], 2, folder / "part0")
        source = folder / f"part0_{KEYS[name]}_document"
        shards = 4 if self.options.quick else 12
        for k in range(1, shards):
            for ending in (".bin", ".idx"):
                shutil.copyfile(f"{source}{ending}", folder / f"part{k}_{KEYS[name]}_document{ending}")
        os.unlink(f"{source}.json")
        self.merge_table(f"{shards} datasets of {name}", folder, 2 * self.turns + 1, 1)
        shutil.rmtree(folder)
        if not self.options.peers:
            return
        folder.mkdir()
        documents = self.peer("many", folder, 4, 10**6 if self.options.quick else 10**7).json()["documents"]
        self.merge_table(f"{documents / 1e6:.0f} million documents of 1 to 8 tokens", folder, self.turns, 1)
        shutil.rmtree(folder)


def machine():
    model = next((line.split(":")[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")), "?")
    commit = subprocess.run(["git", "-C", HERE, "rev-parse", "--short", "HEAD"], capture_output=True, text=True).stdout
    return (f"{model}, {len(os.sched_getaffinity(0))} cores, Linux {platform.release()}, load "
            f"{os.getloadavg()[0]:.1f} before; commit {commit.strip() or 'not known'}, {time.strftime('%Y-%m-%d')}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--corpora", required=True)
    parser.add_argument("--vocab", required=True)
    parser.add_argument("--peers", help="Python with the peers' packages")
    parser.add_argument("--bin", default=HERE.parent / "build" / "release" / "bin", help="Megalith's programs")
    parser.add_argument("--work", help="folder for outputs; the measured disk")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--only", default="preprocess,large,train,merge")
    options = parser.parse_args()
    print(f"`{' '.join([os.path.relpath(sys.argv[0]), *sys.argv[1:]])}`\n\n{machine()}")
    with tempfile.TemporaryDirectory(dir=options.work, prefix="megalith-bench-") as scratch:
        bench = Bench(options, pathlib.Path(scratch))
        for what in options.only.split(","):
            getattr(bench, f"bench_{what}")()


if __name__ == "__main__":
    main()
