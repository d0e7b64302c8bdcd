#!/usr/bin/env python3
"""bench/lora_rate.py: which learning rate LoRA wants: the loss of held-out answers after tuning, for each of several rates.

    bench/lora_rate.py [--bin build/release/bin] [--threads 2] [--work lora-rate] [--steps 400] [--records 960]
                       [--rates 5e-5,2e-4] [--models code,prose]

Makes three models of different families and widths, each from another kind of text (Python's library, prose, this repository's C++),
and a task for each: answers in a form that the text does not have. Pretrains each model, then tunes it once for each rate with the
program's defaults (three epochs, rank 8, all linear layers). Data and models are made once and kept in --work.
"""
import argparse
import json
import pathlib
import pydoc_data.topics
import re
import subprocess
import sys
import sysconfig
import zlib

ROOT = pathlib.Path(__file__).resolve().parents[1]
RATES = "2e-5,5e-5,1e-4,2e-4,5e-4,1e-3,2e-3,5e-3"
HELD_OUT = 120
MODELS = {
    "code": dict(family="GPT-2", layers=4, width=128, more=[]),
    "prose": dict(family="LLaMA", layers=4, width=256, more=["--group-query-attention", "--num-query-groups", "2"]),
    "c++": dict(family="Qwen2", layers=6, width=192, more=["--add-qkv-bias"]),
}
MODERN = ["--swiglu", "--normalization", "RMSNorm", "--position-embedding-type", "rope", "--disable-bias-linear"]


def texts_below(folder, suffixes, most):
    texts = []
    for path in sorted(p for p in folder.rglob("*") if p.suffix in suffixes and "test" not in p.parts):
        texts.append(path.read_text(encoding="utf-8", errors="ignore"))
        if sum(map(len, texts)) > most:
            break
    return texts


def code():
    """Python's library; a function's line is answered with a docstring."""
    texts = texts_below(pathlib.Path(sysconfig.get_path("stdlib")), {".py"}, 4e6)
    records = {}
    for name, given in re.findall(r"^ *def ([a-z][a-z0-9_]*)\(([a-z0-9_, ]+)\):$", "\n".join(texts), re.MULTILINE):
        if len(name) < 25 and given.count(",") < 3:
            answer = f'{name.replace("_", " ").strip().capitalize()}. Args: {given}."""'
            records.setdefault(name, {"src": f'def {name}({given}):\n    """', "tgt": answer})
    return texts, records


def prose():
    """Python's manual and this repository's pages; a sentence is answered with its long words."""
    texts = list(pydoc_data.topics.topics.values()) + texts_below(ROOT / "docs", {".md"}, 2e6)
    records = {}
    for sentence in re.findall(r"(?<=\. )[A-Z][^.|]{40,160}\.", re.sub(r"\s+", " ", " ".join(texts))):
        words = [w for w in re.findall(r"[A-Za-z]+", sentence) if len(w) > 7]
        if words:
            records.setdefault(sentence, {"src": sentence + "\nLong words:", "tgt": " " + ", ".join(words)})
    return texts, records


def declarations():
    """This repository's sources; a function's declaration is answered with a line about it."""
    texts = texts_below(ROOT / "libcore", {".h", ".cpp"}, 4e6)
    records = {}
    found = re.findall(r"^((?:const )?[\w:<>]+[&*]?) (\w+)\(([^()\n]{3,60})\)(?: const)?[;{ ]", "\n".join(texts), re.MULTILINE)
    for made, name, given in found:
        answer = f' {name.replace("_", " ").strip()} takes {given.count(",") + 1} and gives {made}.'
        records.setdefault(name, {"src": f"{made} {name}({given});\n//", "tgt": answer})
    return texts, records


SOURCES = {"code": code, "prose": prose, "c++": declarations}


def run(args, program, *options):
    command = [str(args.bin / ("megalith-" + program)), *map(str, options)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(" ".join(command) + "\n" + done.stdout + done.stderr)


def last(path, kind):
    return [line["loss"] for line in map(json.loads, open(path, encoding="utf-8")) if line["type"] == kind][-1]


def write_data(args, name, folder):
    """The text of a model, a file a document, and its records, none of whose questions is in both files."""
    texts, records = SOURCES[name]()
    (folder / "text").mkdir(parents=True, exist_ok=True)
    for i, text in enumerate(texts):
        (folder / "text" / f"{i:04}.txt").write_text(text, encoding="utf-8")
    order = sorted(records, key=lambda key: zlib.crc32(key.encode()))
    (folder / "records").mkdir(exist_ok=True)
    for part, keys in {"train": order[HELD_OUT:HELD_OUT + args.records], "dev": order[:HELD_OUT]}.items():
        lines = [json.dumps(records[key]) + "\n" for key in keys]
        (folder / "records" / (part + ".json")).write_text("".join(lines), encoding="utf-8")


def make_model(args, name, folder):
    model = MODELS[name]
    if not (folder / "tokenizer").exists():
        write_data(args, name, folder)
        run(args, "tokenizer", "train", "--input", folder / "text", "--text", "file", "--vocab-size", 4096, "--output", folder / "tokenizer")
    run(args, "pretrain", "--num-layers", model["layers"], "--hidden-size", model["width"], "--num-attention-heads", 4,
        "--seq-length", 256, "--max-position-embeddings", 256, "--attention-dropout", 0, "--hidden-dropout", 0,
        *([] if model["family"] == "GPT-2" else MODERN), *model["more"], "--train-data-path", folder / "text",
        "--tokenizer-model", folder / "tokenizer", "--micro-batch-size", 8, "--train-iters", args.steps, "--lr", 2e-3, "--min-lr", 2e-4,
        "--lr-decay-style", "cosine", "--lr-warmup-iters", 30, "--eval-iters", 0, "--log-interval", 20, "--threads", args.threads,
        "--save", folder / "checkpoint", "--load", folder / "checkpoint", "--log-json", folder / "pretrained.jsonl")
    run(args, "convert", folder / "checkpoint", "--output", folder / "hf")


def tuned(args, folder, rate):
    out = folder / ("lora-" + rate)
    if not (out / "done").exists():
        run(args, "finetune", "--model", folder / "hf", "--data", folder / "records", "--output-dir", out, "--overwrite-output-dir",
            "--lora", "--lr", rate, "--threads", args.threads, "--log-json", out.with_suffix(".jsonl"))
        (out / "done").touch()
    return last(out.with_suffix(".jsonl"), "valid")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", type=pathlib.Path, default=ROOT / "build/release/bin")
    parser.add_argument("--work", type=pathlib.Path, default=pathlib.Path("lora-rate"))
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--steps", type=int, default=400, help="of pretraining")
    parser.add_argument("--records", type=int, default=960, help="to learn; 120 others are held out")
    parser.add_argument("--rates", default=RATES)
    parser.add_argument("--models", default=",".join(MODELS))
    args = parser.parse_args()
    rates = args.rates.split(",")
    print("| model | text's loss | before | " + " | ".join(rates) + " |\n|---|--:|--:|" + "--:|" * len(rates))
    for name in args.models.split(","):
        folder = args.work / name
        if not (folder / "hf" / "config.json").exists():
            make_model(args, name, folder)
        before = folder / "before.jsonl"
        if not before.exists():
            run(args, "finetune", "--model", folder / "hf", "--data", folder / "records", "--no-do-train", "--threads", args.threads,
                "--log-json", before)
        row = [last(folder / "pretrained.jsonl", "train"), last(before, "valid"), *(tuned(args, folder, rate) for rate in rates)]
        about = f'{name}: {MODELS[name]["family"]}, {MODELS[name]["layers"]} layers of {MODELS[name]["width"]}'
        print(f"| {about} | " + " | ".join(f"{loss:.3f}" for loss in row) + " |", flush=True)


if __name__ == "__main__":
    main()
