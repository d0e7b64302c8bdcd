#!/usr/bin/env python3
"""summary.py OUT : closes ./demo. Measures what the model learned and prints a short table of what was made and where.

Two checks, exit 1 when one fails: the last validation loss is at least 1.0 nat below the corpus's unigram entropy, and of ten sampled
texts at least five hold an indented line after one that ends in ':'."""
import json
import pathlib
import re
import subprocess
import sys

import numpy

PROMPTS = ["def ", "class ", "import ", "    def ", "if ", "for ", "while ", "try", "with ", "async def "]


def unigram_entropy(prefix):
    """Nats a token of a model that knows only how often each id occurs."""
    ids = numpy.fromfile(f"{prefix}.bin", dtype="<u2")
    p = numpy.bincount(ids) / len(ids)
    p = p[p > 0]
    return float(-(p * numpy.log(p)).sum()), len(ids)


def validation_losses(path):
    lines = [json.loads(line) for line in open(path, encoding="utf-8")]
    return [line["loss"] for line in lines if line["type"] == "valid"]


def sample(model, prompt, seed):
    command = ["megalith-generate", "--model", str(model), "--prompt", prompt, "--max-new-tokens", "120", "--temperature", "0.7",
               "--seed", str(seed)]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def has_indented_block(text):
    """A line that ends in ':' and, after it, one that is indented deeper."""
    return re.search(r"^([ \t]*)\S[^\n]*:[ \t]*\n(?:[ \t]*\n)*\1[ \t]+\S", text, re.M) is not None


def size(path):
    files = [path] if path.is_file() else [f for f in path.rglob("*") if f.is_file()]
    return f"{sum(f.stat().st_size for f in files) / 1e6:.1f} MB"


def main():
    out = pathlib.Path(sys.argv[1])
    entropy, tokens = unigram_entropy(out / "code_content_document")
    loss = validation_losses(out / "metrics.jsonl")[-1]
    texts = [sample(out / "hf", prompt, seed) for seed, prompt in enumerate(PROMPTS)]
    (out / "samples.txt").write_text("\n\n----\n\n".join(texts), encoding="utf-8")
    blocks = sum(has_indented_block(text) for text in texts)
    learned, indents = loss <= entropy - 1.0, blocks >= 5

    print(f"validation loss {loss:.3f} nats, unigram entropy {entropy:.3f} nats: {entropy - loss:.3f} below"
          f" ({'ok' if learned else 'less than 1.0'})")
    print(f"{blocks} of {len(texts)} sampled texts indent after ':' ({'ok' if indents else 'fewer than 5'})\n")
    made = [("dataset", "code_content_document.idx", f"{tokens:,} tokens"), ("tokenizer", "tokenizer", ""),
            ("checkpoint", "checkpoint", ""), ("Hugging Face model", "hf", ""), ("TensorBoard", "tensorboard", ""),
            ("report, loss curve", "report.html", ""), ("sampled texts", "samples.txt", "")]
    for what, name, note in made:
        print(f"{what:20} {out.resolve() / name}  {note or size(out / name)}")
    sys.exit(not (learned and indents))


main()
