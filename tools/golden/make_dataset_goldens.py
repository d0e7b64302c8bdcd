#!/usr/bin/env python3
"""Goldens of tests/data: small datasets written by megatron-core, and the samples that megatron-core draws from them.

    python tools/golden/make_dataset_goldens.py tests/data/goldens

Made with megatron-core 0.16.1, numpy 2.4.6, torch 2.15.0 (CPU only; no torch.distributed), Python 3.11.
Writes {mixed,wide,long}.{bin,idx}, merged.{bin,idx} (mixed and long by add_index), and
  samples.txt  'case ARGUMENTS' (of megalith-pretrain --dump-sample-order), then per split what the C++ side must print:
                 split NAME CLASS len N | split NAME None
                 index NAME KIND DTYPE SHAPE SHA256
                 sample NAME I SHA256-of-ids-as-little-endian-int64 SEQUENCES FIRST-EIGHT-IDS
               and per valid sample an 'item NAME I SHA256(tokens i64) SHA256(labels i64) SHA256(loss mask f32)'
                 A budget after a name (tokens=3000, epochs=1.5) is ours: megatron-core gets the weight that it means here.
  parts.txt    'case PART ARGUMENTS | WORDS OF THE PART', and the datasets that --train-data-path and so on give, as in
               samples.txt; with --each, those of --multiple-validation-sets --full-validation
  splits.txt   'SPLIT|S|begin end or None, three times'
  sums.txt     'COUNT HEX': numpy.sum of the doubles ((7919 i + 13) mod 1000) / 7 for i < COUNT
"""
import argparse, hashlib, logging, os, shlex, sys, tempfile, warnings

os.environ["CUDA_VISIBLE_DEVICES"] = ""
warnings.filterwarnings("ignore")
logging.disable(logging.CRITICAL)
import numpy
import torch
from megatron.core.datasets.blended_dataset import BlendedDataset
from megatron.core.datasets.blended_megatron_dataset_builder import BlendedMegatronDatasetBuilder
from megatron.core.datasets.blended_megatron_dataset_config import (
    convert_split_vector_to_split_matrix, parse_and_normalize_split)
from megatron.core.datasets.gpt_dataset import GPTDataset, GPTDatasetConfig
from megatron.core.datasets.indexed_dataset import IndexedDataset, IndexedDatasetBuilder
from megatron.core.datasets.utils import get_blend_from_list

CASES = [
    "--data-path mixed --seed 1234 --seq-length 16 --split 8,1,1 --samples 0 0 0 --n 4",                     # one epoch
    "--data-path mixed --seed 1234 --seq-length 16 --split 969,30,1 --samples 300 3 none --n 4",             # several
    "--data-path mixed --seed 7 --seq-length 16 --split 100,0,0 --samples 300 none none --n 4",              # last apart
    "--data-path mixed --seed 7 --seq-length 16 --split 100,0,0 --samples 345 none none --n 4",              # last mixed in
    "--data-path mixed --seed 5 --seq-length 32 --split 50,50 --samples 0 0 0 --n 25 --keep-last-partial-valid",
    "--data-path mixed --seed 5 --seq-length 32 --split 50,50 --samples 0 0 0 --n 25 --keep-last-partial-valid --pad 3",
    "--data-path mixed --seed 5 --seq-length 32 --split 50,50 --samples 0 0 0 --n 25 --keep-last-partial-valid"
    " --vocab-size 600 --pad 599",                                                                       # pad is eod
    "--data-path mixed --seed 9 --seq-length 16 --split 1,1,1 --samples 90 0 20 --n 6 --no-extra-token",
    "--data-path mixed --seed 9 --seq-length 2 --split 1,1,1 --samples 0 0 0 --n 4",
    "--data-path mixed --seed 4294967295 --seq-length 1000 --split 98,1,1 --samples 3 none none --n 3",  # spans many
    "--data-path wide --seed 3 --seq-length 64 --split 90,5,5 --samples 50 5 5 --n 4",
    "--data-path 0.3 mixed 0.5 long 0.2 mixed --seed 11 --seq-length 16 --split 8,1,1 --samples 333 20 10 --n 4",
    "--data-path 30 mixed 70 long --seed 11 --seq-length 16 --split 80,20,0 --samples 100 8 4 --n 4",
    "--data-path 2.5 long --seed 12 --seq-length 32 --split 8,1,1 --samples 100 10 5 --n 4",
    "--data-path mixed long --seed 13 --seq-length 16 --split 8,1,1 --samples 0 0 0 --n 4",              # exhaustive
    "--data-path mixed long wide --seed 13 --seq-length 16 --split 8,1,1 --samples 40 0 100000 --n 4",
    "--data-path " + " ".join(f"{w} {p}" for w, p in zip(
        (0.1, 0.7, 0.3, 1.1, 0.013, 2.3, 0.9, 1e-1, 0.37, 0.21), ("mixed", "long") * 5))
    + " --seed 14 --seq-length 16 --split 8,2 --samples 500 90 1 --n 4",                                 # pairwise sums
]
CASES += [
    "--data-path mixed tokens=3000 long epochs=1.5 --seed 15 --seq-length 16 --split 8,1,1 --samples 300 20 10 --n 4",
    "--data-path long epochs=0.25 wide epochs=2 mixed tokens=1.5e3 --seed 16 --seq-length 8 --split 90,5,5 --samples 400 9 5"
    " --n 4",
]
PARTS = [
    "0 --seed 21 --seq-length 16 --samples 200 | 0.3 mixed 0.7 long", "0 --seed 21 --seq-length 16 --samples 90 | mixed",
    "0 --seed 22 --seq-length 16 --samples 150 | 2.5 long", "0 --seed 21 --seq-length 16 --samples 60 | mixed long",
    "0 --seed 23 --seq-length 8 --samples 200 | wide epochs=0.5 mixed tokens=900", "1 --seed 24 --seq-length 16 --samples none | mixed",
    "1 --seed 24 --seq-length 16 --samples none | mixed long wide", "1 --seed 25 --seq-length 16 --samples none --each | mixed long wide",
    "2 --seed 26 --seq-length 16 --samples 7 | mixed long",
]
SPLITS = ["969, 30, 1", "99,1", "1,1,1", "100,0,0", "0.5,0.25,0.25", "98 1 1", "949,50,1", "0,1,0", "8/1/1", "0.1,0.7,0.3"]


def build(prefix, dtype, documents):
    builder = IndexedDatasetBuilder(prefix + ".bin", dtype=dtype)
    for sequences in documents:
        ids = [i for s in sequences for i in s]
        builder.add_document(torch.tensor(ids, dtype=torch.int64), [len(s) for s in sequences])
    builder.finalize(prefix + ".idx")


def make_datasets():
    rng = numpy.random.RandomState(2024)
    ids = lambda n, top: rng.randint(0, top, n).tolist()
    mixed = []
    for d in range(90):
        kind = d % 9
        if kind == 4: mixed.append([])                                   # an empty document
        elif kind == 7: mixed.append([ids(5, 600), [], ids(11, 600)])    # sentences, one of them empty
        else: mixed.append([ids(rng.randint(1, 40), 600)])
    build("mixed", numpy.uint16, mixed)
    build("wide", numpy.int32, [[ids(rng.randint(1, 120), 200000)] for _ in range(40)])
    build("long", numpy.uint16, [[ids(rng.randint(50, 400), 600)] for _ in range(21)])
    merged = IndexedDatasetBuilder("merged.bin", dtype=numpy.uint16)
    for prefix in ("long", "mixed"): merged.add_index(prefix)
    merged.finalize("merged.idx")


def as_weights(words, split):
    """The words of a data path with a weight of whole tokens for each budget; other words as they are."""
    if not any("=" in word for word in words): return words
    share = parse_and_normalize_split(split)[0]
    out = []
    for prefix, budget in zip(words[::2], words[1::2]):
        kind, amount = budget.split("=")
        data = IndexedDataset(prefix)   # whose lengths are a view of its map
        lengths = data.sequence_lengths.astype(numpy.int64)
        epoch = int(lengths[:int(round(share * len(lengths)))].sum())
        out += [str(round(float(amount) * (epoch if kind == "epochs" else 1))), prefix]
    return out


def sha(array):
    return hashlib.sha256(numpy.ascontiguousarray(array).tobytes()).hexdigest()


def run_case(text, out, items=True):
    parser = argparse.ArgumentParser()
    parser.add_argument("--data-path", nargs="+")
    for name in ("--seed", "--seq-length", "--n"): parser.add_argument(name, type=int)
    parser.add_argument("--split")
    parser.add_argument("--samples", nargs=3)
    for name in ("--no-extra-token", "--keep-last-partial-valid"): parser.add_argument(name, action="store_true")
    parser.add_argument("--vocab-size", type=int, default=50257)
    parser.add_argument("--pad", type=int, default=-1)
    a = parser.parse_args(shlex.split(text))

    class Tokenizer:
        vocab_size, eod, eos, pad = a.vocab_size, a.vocab_size - 1, a.vocab_size - 1, a.pad
        unique_identifiers = {"class": "Tokenizer"}

    config = GPTDatasetConfig(
        random_seed=a.seed, sequence_length=a.seq_length, blend=get_blend_from_list(as_weights(a.data_path, a.split)),
        split=a.split,
        path_to_cache=None, tokenizer=Tokenizer(), reset_position_ids=False, reset_attention_mask=False,
        eod_mask_loss=False, create_attention_mask=False, add_extra_token_to_sequence=not a.no_extra_token,
        drop_last_partial_validation_sequence=not a.keep_last_partial_valid)
    sizes = [None if s in ("0", "none") else int(s) for s in a.samples]
    say = lambda *words: print(*words, file=out)
    say("case", text)

    def index(name, kind, x): say("index", name, kind, x.dtype.str, "x".join(map(str, x.shape)), sha(x))

    def gpt(name, d):
        say("split", name, "GPTDataset len", len(d))
        index(name, "document", d.document_index)
        index(name, "sample", d.sample_index)
        index(name, "shuffle", d.shuffle_index)

    datasets = BlendedMegatronDatasetBuilder(GPTDataset, sizes, lambda: True, config).build()
    for name, d in zip(("train", "valid", "test"), datasets):
        if d is None:
            say("split", name, "None")
            continue
        if isinstance(d, BlendedDataset):
            for j, member in enumerate(d.datasets): gpt(f"{name}.{j}", member)
            say("split", name, "BlendedDataset len", len(d))
            index(name, "dataset", d.dataset_index)
            index(name, "dataset_sample", d.dataset_sample_index)
        else:
            gpt(name, d)
        for i in range(min(a.n, len(d))):
            member, j = (d.datasets[int(d.dataset_index[i])], int(d.dataset_sample_index[i])) \
                if isinstance(d, BlendedDataset) else (d, i)
            ids, documents = member._query_document_sample_shuffle_indices(j)
            ids = numpy.asarray(ids, dtype="<i8")
            say("sample", name, i, sha(ids), len(documents), *ids[:8].tolist())
        for i in range(min(a.n, len(d)) if items and name == "valid" else 0):   # where samples may be padded
            item = d[i]
            say("item", name, i, sha(item["tokens"].numpy().astype("<i8")), sha(item["labels"].numpy().astype("<i8")),
                sha(item["loss_mask"].numpy().astype("<f4")))


def run_part(text, out):
    arguments, words = text.split(" | ")
    parser = argparse.ArgumentParser()
    parser.add_argument("part", type=int)
    for name in ("--seed", "--seq-length"): parser.add_argument(name, type=int)
    parser.add_argument("--samples")
    parser.add_argument("--each", action="store_true")
    a = parser.parse_args(arguments.split())

    class Tokenizer:
        vocab_size, eod, eos, pad = 50257, 50256, 50256, -1
        unique_identifiers = {"class": "Tokenizer"}

    blends, sizes = [None, None, None], [0, 0, 0]
    blends[a.part] = get_blend_from_list(as_weights(words.split(), "1"))
    sizes[a.part] = None if a.samples == "none" else int(a.samples)
    config = GPTDatasetConfig(
        random_seed=a.seed, sequence_length=a.seq_length, blend_per_split=blends, path_to_cache=None, tokenizer=Tokenizer(),
        reset_position_ids=False, reset_attention_mask=False, eod_mask_loss=False, create_attention_mask=False,
        multiple_validation_sets=a.each, full_validation=a.each)
    built = BlendedMegatronDatasetBuilder(GPTDataset, sizes, lambda: True, config).build()[a.part]
    print("case", text, file=out)
    for d in built if isinstance(built, list) else [built]:
        members = d.datasets if isinstance(d, BlendedDataset) else [d]
        for member in members:
            print("dataset", len(member), sha(member.document_index), sha(member.sample_index), sha(member.shuffle_index), file=out)
        if isinstance(d, BlendedDataset):
            print("blend", len(d), sha(d.dataset_index), sha(d.dataset_sample_index), file=out)


def main():
    target = os.path.abspath(sys.argv[1])
    os.makedirs(target, exist_ok=True)
    os.chdir(target)
    make_datasets()
    with tempfile.TemporaryDirectory() as scratch:   # megatron-core keeps its index cache beside the data
        for name in os.listdir(target):
            if name.endswith((".bin", ".idx")):
                with open(name, "rb") as src, open(os.path.join(scratch, name), "wb") as dst: dst.write(src.read())
        os.chdir(scratch)
        with open(os.path.join(target, "samples.txt"), "w") as out:
            for case in CASES: run_case(case, out)
        with open(os.path.join(target, "parts.txt"), "w") as out:
            for case in PARTS: run_part(case, out)
        os.chdir(target)
    with open("splits.txt", "w") as out:
        for split in SPLITS:
            matrix = convert_split_vector_to_split_matrix(parse_and_normalize_split(split))
            for n in (0, 1, 2, 3, 5, 10, 47, 1000, 99999, 2**31 - 1):
                ranges = ["None" if m is None else f"{int(round(m[0] * float(n)))} {int(round(m[1] * float(n)))}" for m in matrix]
                print("|".join([split, str(n)] + ranges), file=out)
    with open("sums.txt", "w") as out:
        for n in list(range(1, 20)) + [127, 128, 129, 136, 137, 255, 256, 257, 300, 1000, 4097]:
            print(n, float(numpy.sum(numpy.array([((7919 * i + 13) % 1000) / 7 for i in range(n)]))).hex(), file=out)


if __name__ == "__main__":
    main()
