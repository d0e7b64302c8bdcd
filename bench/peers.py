#!/usr/bin/env python3
"""What bench/preprocess.py compares Megalith with: the fastest Python pipelines known, each in its own process.

  peers.py pipeline LIBRARY CORPUS.jsonl KEY VOCABULARY [PASSES]           JSON lines to ids in memory, one thread
  peers.py train rustbpe|hf CORPUS.jsonl KEY VOCAB_SIZE                    byte-level BPE merges from JSON lines
  peers.py merge FOLDER PREFIX                                             Megatron's merge_datasets.py, its core
  peers.py many FOLDER DATASETS DOCUMENTS                                  makes datasets of short documents
  peers.py large CORPUS.jsonl KEY OUTPUT.jsonl BYTES                       repeats a corpus with variation

LIBRARY and VOCABULARY: fastokens, gigatoken or tokenizers with a tokenizer.json; sentencepiece with a .model; tiktoken
with a tekken.json, or with a file of ranks that lies beside a tokenizer.json, whose expression it takes.
PASSES: 3 unless given.

Each prints one line of JSON. pip: orjson and the library; rustbpe, tokenizers; megatron-core; numpy. Seconds are of the
work alone: neither Python's start nor the load of the vocabulary counts."""
import base64
import json
import os
import sys
import time

GPT2_PATTERN = r"""'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"""


def texts_of(line, parse, key):
    text = parse(line)[key]
    return text if isinstance(text, list) else [text]


def tolerant_parser():
    """orjson where it can; the standard module for what only that takes (NaN, lone surrogates)."""
    import orjson

    def parse(line):
        try:
            return orjson.loads(line)
        except orjson.JSONDecodeError:
            return json.loads(line)

    return parse


def tiktoken_encoding(path):
    import tiktoken

    if path.endswith(".json"):
        with open(path) as file:
            tekken = json.load(file)
        count = tekken["config"]["default_vocab_size"] - tekken["config"]["default_num_special_tokens"]
        pattern = tekken["config"]["pattern"]
        ranks = {base64.b64decode(token["token_bytes"]): token["rank"] for token in tekken["vocab"][:count]}
    else:
        with open(os.path.join(os.path.dirname(path), "tokenizer.json")) as file:
            split = json.load(file)["pre_tokenizer"]["pretokenizers"][0]
        pattern = split["pattern"]["Regex"]
        with open(path) as file:
            ranks = {base64.b64decode(token): int(rank) for token, rank in map(str.split, file)}
    return tiktoken.Encoding(path, pat_str=pattern, mergeable_ranks=ranks, special_tokens={})


def batch_encoder(library, tokenizer):
    """A function from a list of texts to their number of ids."""
    if library == "tokenizers":
        import tokenizers

        tok = tokenizers.Tokenizer.from_file(tokenizer)
        encode = getattr(tok, "encode_batch_fast", tok.encode_batch)  # tokenizers 1.0 has one function
        return lambda batch: sum(map(len, encode(batch, add_special_tokens=False)))
    if library == "sentencepiece":
        import sentencepiece

        tok = sentencepiece.SentencePieceProcessor(model_file=tokenizer)
        return lambda batch: sum(map(len, tok.encode(batch, num_threads=1)))
    if library == "tiktoken":
        tok = tiktoken_encoding(tokenizer)
        return lambda batch: sum(map(len, tok.encode_ordinary_batch(batch, num_threads=1)))
    if library == "fastokens":
        import fastokens

        tok = fastokens._native.Tokenizer.from_file(tokenizer)
        return lambda batch: len(tok.encode_batch_flat(batch)[0]) // 4
    import gigatoken

    tok = gigatoken.Tokenizer(tokenizer)
    return lambda batch: len(tok.encode_batch(batch, parallel=False).layout.content)


def pipeline(library, corpus, key, tokenizer, count=3):
    """orjson per line and batches of about 2 MB; the first pass has cold caches, the best of `count` warm ones."""
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    os.environ.update(TOKENIZERS_PARALLELISM="false", RAYON_NUM_THREADS="1")
    parse, encode = tolerant_parser(), batch_encoder(library, tokenizer)
    passes = []
    for _ in range(int(count)):
        start, processor, ids, batch, held = time.perf_counter(), time.process_time(), 0, [], 0
        with open(corpus, "rb", buffering=1 << 20) as lines:
            for line in lines:
                batch += texts_of(line, parse, key)
                held += len(line)
                if held > 2_000_000:
                    ids, batch, held = ids + encode(batch), [], 0
        if batch:
            ids += encode(batch)
        passes.append((time.perf_counter() - start, time.process_time() - processor))
    return {"passes": [passes[0], min(passes)], "tokens": ids}


def train(library, corpus, key, vocab_size):
    def texts():
        parse = tolerant_parser()
        with open(corpus, "rb") as lines:
            for line in lines:
                yield from texts_of(line, parse, key)

    size, start = int(vocab_size), time.perf_counter()
    if library == "rustbpe":
        import rustbpe

        tok = rustbpe.Tokenizer()
        tok.train_from_iterator(texts(), size - 1, pattern=GPT2_PATTERN)
        merges = tok.vocab_size - 256
    else:
        from tokenizers import Tokenizer, models, pre_tokenizers, trainers

        tok = Tokenizer(models.BPE())
        tok.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        trainer = trainers.BpeTrainer(vocab_size=size, special_tokens=["<|endoftext|>"], show_progress=False,
                                      initial_alphabet=pre_tokenizers.ByteLevel.alphabet())
        tok.train_from_iterator(texts(), trainer=trainer)
        merges = tok.get_vocab_size() - 257
    return {"seconds": time.perf_counter() - start, "merges": merges}


def merge(folder, prefix):
    from megatron.core.datasets.indexed_dataset import IndexedDataset, IndexedDatasetBuilder

    start, builder = time.perf_counter(), None
    for name in sorted(name[:-4] for name in os.listdir(folder) if name.endswith(".bin")):
        source = os.path.join(folder, name)
        if builder is None:
            builder = IndexedDatasetBuilder(prefix + ".bin", dtype=IndexedDataset(source).index.dtype)
        builder.add_index(source)
    builder.finalize(prefix + ".idx")
    return {"seconds": time.perf_counter() - start}


def many(folder, datasets, documents):
    """Documents of 1 to 8 tokens of type uint16, one sequence each."""
    import struct

    import numpy

    draw, n = numpy.random.default_rng(0), int(documents)
    for k in range(int(datasets)):
        lengths = draw.integers(1, 9, n, dtype=numpy.int32)
        ends = numpy.cumsum(lengths.astype(numpy.int64) * 2)
        draw.integers(0, 50257, int(ends[-1]) // 2, dtype=numpy.uint16).tofile(f"{folder}/part{k}.bin")
        with open(f"{folder}/part{k}.idx", "wb") as idx:
            idx.write(b"MMIDIDX\0\0" + struct.pack("<QBQQ", 1, 8, n, n + 1))
            lengths.tofile(idx)
            (ends - 2 * lengths).tofile(idx)
            numpy.arange(n + 1, dtype=numpy.int64).tofile(idx)
    return {"documents": n * int(datasets)}


def large(corpus, key, output, size):
    """The corpus again and again, its lines in another order and each document with another first word."""
    import random

    draw, head, copy = random.Random(0), f'"{key}": "'.encode(), 0
    with open(corpus, "rb") as file:
        lines = file.readlines()
    with open(output, "wb") as out:
        while out.tell() < float(size):
            for line in lines:
                out.write(line.replace(head, head + f"Copy{copy}x{draw.randrange(10**6)} ".encode(), 1))
            draw.shuffle(lines)
            copy += 1
        return {"bytes": out.tell()}


if __name__ == "__main__":
    commands = {"pipeline": pipeline, "train": train, "merge": merge, "many": many, "large": large}
    if len(sys.argv) < 2 or sys.argv[1] not in commands:
        sys.exit(__doc__)
    print(json.dumps(commands[sys.argv[1]](*sys.argv[2:])))
