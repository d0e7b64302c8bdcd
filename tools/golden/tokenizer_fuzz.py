"""The comparison that --fuzz makes in make_unigram.py and make_wordpiece.py, and their options."""
import argparse
import json
import os
import subprocess
import tempfile


def parse_options():
    parser = argparse.ArgumentParser()
    parser.add_argument("paths", nargs="*")
    parser.add_argument("--fuzz")
    parser.add_argument("--models", type=int, default=100)
    parser.add_argument("--texts", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    return parser.parse_args()


def ours(binary, path, texts):
    """The ids that megalith-tokenizer gives the texts, or its message."""
    kind = "Llama2Tokenizer" if path.endswith(".model") else "HuggingFaceTokenizer"
    lines = "\n".join(json.dumps(t) for t in texts) + "\n"
    result = subprocess.run([binary, "encode", "--json", "--tokenizer-type", kind, "--tokenizer-model", path], input=lines.encode(), capture_output=True)
    if result.returncode != 0:
        return result.stderr.decode()
    return [list(map(int, line.split())) for line in result.stdout.decode().split("\n")[:-1]]


def fuzz(name, given, cases):
    """Whether megalith-tokenizer (given.fuzz) gives other ids than are wanted. cases(folder) yields for each of given.models models its file, which it
    writes there, texts, and the ids that are wanted. Models with a difference are kept."""
    compared = different = 0
    with tempfile.TemporaryDirectory() as folder:
        for number, (path, texts, wanted) in enumerate(cases(folder)):
            found = ours(given.fuzz, path, texts)
            compared += len(texts)
            if found == wanted:
                continue
            where = [(t, w, f) for t, w, f in zip(texts, wanted, found) if w != f] if isinstance(found, list) else []
            different += len(where) or len(texts)
            kept = os.path.join(tempfile.gettempdir(), f"{name}-{given.seed}-{number}" + os.path.splitext(path)[1])
            os.replace(path, kept)
            print(kept, found[:300] if isinstance(found, str) else [(t[:80], w[:12], f[:12]) for t, w, f in where[:2]], flush=True)
    print(f"{compared} texts with {given.models} models, {different} differ")
    return different > 0
