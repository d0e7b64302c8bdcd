#!/usr/bin/env python3
"""Measures megalith-preprocess beside its peers on JSON lines, plain text and Parquet, with several vocabularies. All programs
take turns on one core; of each the median, min and max of its processor seconds (user and system) are printed, which other
work of the machine disturbs less than wall time. The output is Markdown, ready for docs/benchmarks.md.

  bench/preprocess_inputs.py --corpus EN.jsonl --vocabularies DIR --peers PYTHON [--megatron PYTHON] [--only gpt2,llama3]

--corpus has the key "text"; the first --bytes of it are used. Of peers, the processor time of the work alone counts: neither
Python's start nor the load of the vocabulary; of those that write files, what their process takes beyond that for one document.
Of Megalith (to synced files) and of Megatron-LM's preprocess_data_fast.py the whole process counts. DIR holds a folder with
tokenizer.json for each vocabulary.
--peers has gigatoken, tokenizers, tiktoken, pyarrow and awkward. --megatron has torch, transformers and gigatoken, and needs
--megatron-lm, the checkout, whose preprocess_data.py and preprocess_data_fast.py run. --datatrove has datatrove, tokenizers and
orjson. What is much slower than Megalith reads the first tenth of the corpus, as JSON lines. About three minutes for a
vocabulary on an idle core."""
import argparse
import json
import os
import pathlib
import re
import statistics
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from preprocess import Run, machine  # noqa: E402

GPT2_PATTERN = r"""'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"""
SLOW, FAST = "preprocess_data.py", "preprocess_data_fast.py"  # of Megatron-LM
MARK = "\n\n"  # between documents of plain text; --text paragraph takes blank lines


# --- what the peers' Python runs: peer NAME KIND FILE TOKENIZER_FOLDER

def texts_of(path):
    with open(path, "rb") as lines:
        return [json.loads(line)["text"] for line in lines]


def by_gigatoken(kind, path, folder):
    import gigatoken
    model = gigatoken.Tokenizer(f"{folder}/tokenizer.json")
    source = {"jsonl": lambda: gigatoken.JsonlFileSource([path], field="text"),
              "parquet": lambda: gigatoken.ParquetFileSource([path], column="text"),
              "text": lambda: gigatoken.TextFileSource([path], separator=MARK)}[kind]()
    return lambda: len(model.encode_files(source, parallel=False).layout.content)


def by_tokenizers(kind, path, folder):
    import tokenizers
    model = tokenizers.Tokenizer.from_file(f"{folder}/tokenizer.json")
    return lambda: sum(len(one.ids) for one in model.encode_batch_fast(texts_of(path), add_special_tokens=False))


def byte_of_characters():
    """The bytes for which GPT-2's printable characters stand."""
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [byte for byte in range(256) if byte not in printable]
    return {chr(byte): byte for byte in printable} | {chr(256 + i): byte for i, byte in enumerate(others)}


def by_tiktoken(kind, path, folder):
    import tiktoken
    description = json.loads(pathlib.Path(folder, "tokenizer.json").read_text(encoding="utf-8"))
    steps = (description["pre_tokenizer"] or {}).get("pretokenizers", [])
    patterns = [step["pattern"]["Regex"] for step in steps if step["type"] == "Split"]
    if len(patterns) > 1:
        return None  # tiktoken has one
    bytes_of = byte_of_characters()
    ranks = {bytes(bytes_of[c] for c in word): rank for word, rank in description["model"]["vocab"].items()
             if all(c in bytes_of for c in word)}
    model = tiktoken.Encoding("bench", pat_str=patterns[0] if patterns else GPT2_PATTERN, mergeable_ranks=ranks, special_tokens={})
    return lambda: sum(len(model.encode_ordinary(text)) for text in texts_of(path))


def peer(name, kind, path, folder):
    work = {"gigatoken": by_gigatoken, "tokenizers": by_tokenizers, "tiktoken": by_tiktoken}[name](kind, path, folder)
    if not work:
        return {"tokens": None}
    begin = time.process_time()
    tokens = work()
    return {"tokens": tokens, "processor": time.process_time() - begin}


def run_datatrove(path, tokenizer, out):
    """datatrove's pipeline that writes a dataset for Megatron-LM."""
    from datatrove.executor import LocalPipelineExecutor
    from datatrove.pipeline.readers import JsonlReader
    from datatrove.pipeline.tokens.megatron_tokenizer import MegatronDocumentTokenizer
    source = pathlib.Path(path)
    steps = [JsonlReader(str(source.parent), glob_pattern=source.name),
             MegatronDocumentTokenizer(out, save_filename="trove", tokenizer_name_or_path=tokenizer, eos_token=None)]
    LocalPipelineExecutor(steps, tasks=1, workers=1, logging_dir=f"{out}/trove-log", skip_completed=False).run()
    return {}


def write_parquet(source, path):
    import pyarrow
    import pyarrow.parquet
    pyarrow.parquet.write_table(pyarrow.table({"text": texts_of(source)}), path)
    return {}


# --- what compares

class Inputs:
    """The same documents in each form. Documents have no blank lines, which would divide them as plain text."""

    def __init__(self, options, folder):
        self.files = {kind: folder / f"corpus.{kind}" for kind in ("jsonl", "text", "parquet")}
        self.tenth, self.first = folder / "tenth.jsonl", folder / "first.jsonl"
        texts, held = [], 0
        with open(options.corpus, "rb") as lines:
            for line in lines:
                text = re.sub(r"\n\s*\n", "\n", json.loads(line)["text"]).strip()
                texts += [text] if text else []
                held += len(line)
                if held > options.bytes:
                    break
        self.documents = len(texts)
        for path, part in ((self.files["jsonl"], texts), (self.tenth, texts[:len(texts) // 10]), (self.first, texts[:1])):
            path.write_text("".join(json.dumps({"text": text}, ensure_ascii=False) + "\n" for text in part), encoding="utf-8")
        self.files["text"].write_text(MARK.join(texts), encoding="utf-8")
        self.text_bytes = sum(len(text.encode()) for text in texts)
        self.tenth_bytes = sum(len(text.encode()) for text in texts[:len(texts) // 10])
        Run([options.peers, __file__, "parquet", self.files["jsonl"], self.files["parquet"]])


def tokens_of(prefix):
    """The number of ids of a dataset, from its file's size."""
    with open(f"{prefix}.idx", "rb") as index:
        kind = index.read(18)[17]
    return os.path.getsize(f"{prefix}.bin") // {4: 4, 8: 2}[kind]


class Programs:
    def __init__(self, options, inputs, folder):
        self.options, self.inputs, self.folder = options, inputs, folder
        self.environment = {"RAYON_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false"}
        self.starts = {}  # processor seconds of each program and vocabulary on one document

    def megalith(self, kind, vocabulary):
        run = Run([self.options.bin / "megalith-preprocess", "--input", self.inputs.files[kind], "--output-prefix", self.folder / "out",
                   "--tokenizer-model", vocabulary, "--workers", "1", *(["--text", "paragraph"] if kind == "text" else [])], 1)
        sidecar = json.loads((self.folder / "out_text_document.json").read_text())
        if sidecar["documents"] != self.inputs.documents:
            sys.exit(f"{kind}: {sidecar['documents']} documents, wanted {self.inputs.documents}")
        return {"whole": run.processor, "work": run.processor, "tokens": sidecar["tokens"]}

    def peer(self, name, path, kind, vocabulary):
        os.environ.update(self.environment)
        run = Run([self.options.peers, __file__, "peer", name, kind, path, vocabulary], 1)
        found = run.json()
        return {"whole": run.processor, "work": found.get("processor"), "tokens": found["tokens"]}

    def megatron(self, script, path, vocabulary):
        prefix = self.folder / script
        os.environ.update(self.environment, PYTHONPATH=str(self.options.megatron_lm), CUDA_VISIBLE_DEVICES="")
        run = Run([self.options.megatron, self.options.megatron_lm / "tools" / script, "--input", path, "--output-prefix", prefix,
                   "--tokenizer-type", "HuggingFaceTokenizer", "--tokenizer-model", vocabulary,
                   *(["--use-gigatoken"] if script == FAST else ["--workers", "1"])], 1)
        del os.environ["PYTHONPATH"]
        found = {"whole": run.processor, "tokens": tokens_of(f"{prefix}_text_document")}
        if script == FAST:  # of wall time, after its imports
            found["clock"] = float(re.search(r"Elapsed time: ([\d.]+) seconds", run.text).group(1))
        return found

    def datatrove(self, path, vocabulary):
        os.environ.update(self.environment)
        run = Run([self.options.datatrove, __file__, "datatrove", path, vocabulary / "tokenizer.json", self.folder], 1)
        return {"whole": run.processor, "tokens": tokens_of(self.folder / "trove_00000_tokens")}

    @staticmethod
    def as_a_whole(found):
        return {**found, "work": found["whole"]}

    def beyond_one_document(self, name, run, vocabulary):
        """What a program does on the tenth; its work alone is what it takes beyond what one document takes."""
        if (name, vocabulary) not in self.starts:
            self.starts[name, vocabulary] = run(self.inputs.first, vocabulary)["whole"]
        found = run(self.inputs.tenth, vocabulary)
        return {**found, "work": found["whole"] - self.starts[name, vocabulary]}

    def rows_to_disk(self, vocabulary):
        """Programs that write files. The work of the fast script is so short beside its start that the whole process counts."""
        whole, tenth = self.inputs.text_bytes, self.inputs.tenth_bytes
        if self.options.megatron:
            yield f"{SLOW}, to disk", tenth, lambda: self.beyond_one_document(
                SLOW, lambda *what: self.megatron(SLOW, *what), vocabulary)
            yield f"{FAST}, whole process to disk", whole, lambda: self.as_a_whole(
                self.megatron(FAST, self.inputs.files["jsonl"], vocabulary))
        if self.options.datatrove:
            yield "datatrove, to disk", tenth, lambda: self.beyond_one_document(
                "datatrove", self.datatrove, vocabulary)

    def rows(self, kind, vocabulary):
        """Each program with the bytes of text that it reads."""
        whole, tenth = self.inputs.text_bytes, self.inputs.tenth_bytes
        yield "megalith-preprocess, to disk", whole, lambda: self.megalith(kind, vocabulary)
        yield "gigatoken, in memory", whole, lambda: self.peer("gigatoken", self.inputs.files[kind], kind, vocabulary)
        if kind != "jsonl":
            return
        yield from self.rows_to_disk(vocabulary)
        for name in ("tokenizers", "tiktoken"):
            yield f"{name}, in memory", tenth, lambda name=name: self.peer(name, self.inputs.tenth, kind, vocabulary)


def spread(values):
    return f"{statistics.median(values):.2f} ({min(values):.2f} – {max(values):.2f})"


def table(programs, kind, vocabulary, turns):
    rows = list(programs.rows(kind, vocabulary))
    found = {name: [] for name, _, _ in rows}
    rows[0][2]()  # ours keeps tables of a vocabulary
    for turn in range(turns):
        for name, _, run in rows[::-1] if turn % 2 else rows:
            found[name].append(run())
    print(f"\n**{vocabulary.name}, {kind}: {programs.inputs.text_bytes / 1e6:.0f} MB of text**\n")
    print("| program | processor s of the process | of its work alone | MB/s of the work | times as long as ours | tokens |")
    print("|---|---|---|---|---|---|")
    ours = found[rows[0][0]]
    for name, size, _ in rows:
        if found[name][0]["work"] is None:
            print(f"| {name} | cannot: several expressions | | | | |")
            continue
        work = [one["work"] for one in found[name]]
        ratio = statistics.median(theirs / own["whole"] for theirs, own in zip(work, ours)) * programs.inputs.text_bytes / size
        print(f"| {name} | {spread([one['whole'] for one in found[name]])} | {spread(work)} | {size / 1e6 / statistics.median(work):.3g} | "
              f"{ratio:.2f} | {found[name][0]['tokens'] or ''} |")
    for name, turns_of in found.items():
        if "clock" in turns_of[0]:
            print(f"\nBy its own clock, of wall time, {name} takes {spread([one['clock'] for one in turns_of])} s.")
    sys.stdout.flush()


def main():
    if sys.argv[1:2] == ["peer"]:
        return print(json.dumps(peer(*sys.argv[2:])))
    if sys.argv[1:2] == ["datatrove"]:
        return print(json.dumps(run_datatrove(*sys.argv[2:])))
    if sys.argv[1:2] == ["parquet"]:
        return print(json.dumps(write_parquet(*sys.argv[2:])))
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--corpus", type=pathlib.Path, required=True)
    parser.add_argument("--vocabularies", type=pathlib.Path, required=True)
    parser.add_argument("--peers", required=True, help="Python with the peers' packages")
    parser.add_argument("--megatron", help="Python that runs Megatron-LM's scripts")
    parser.add_argument("--datatrove", help="Python with datatrove")
    parser.add_argument("--megatron-lm", type=pathlib.Path, help="Megatron-LM at d98e8a64")
    parser.add_argument("--bin", type=pathlib.Path, default=pathlib.Path(__file__).resolve().parent.parent / "build/release/bin")
    parser.add_argument("--bytes", type=int, default=30_000_000)
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--only", default="gpt2,llama3,qwen2,deepseek")
    parser.add_argument("--kinds", default="jsonl,text,parquet")
    options = parser.parse_args()
    if options.megatron and not options.megatron_lm:
        parser.error("--megatron needs --megatron-lm")
    print(f"`{' '.join([os.path.relpath(sys.argv[0]), *sys.argv[1:]])}`\n\n{machine()}")
    with tempfile.TemporaryDirectory(prefix="megalith-bench-") as scratch:
        os.environ["MEGALITH_CACHE_DIR"] = f"{scratch}/cache"
        inputs = Inputs(options, pathlib.Path(scratch))
        for name in options.only.split(","):
            for kind in options.kinds.split(","):
                table(Programs(options, inputs, pathlib.Path(scratch)), kind, options.vocabularies / name, options.turns)
    return None


if __name__ == "__main__":
    main()
