#!/usr/bin/env python3
"""bench/generate.py: tokens per second of megalith-generate beside transformers, on a random model of GPT-2 124M's shape.

    bench/generate.py [--bin build/release/bin] [--threads 2] [--tokens 128] [--rounds 3] [--dtype bf16,fp32] [--work DIR]
                      [--prompts 1x62,8x62,1x256,1x850]

Needs torch and transformers. Greedy, no end of text. --prompts: so many prompts at once, of so many tokens each (a byte is a
token). Each round runs both programs one after the other; the table has the medians. The model is made once and kept in --work. Speeds are those after the first token, from
the programs' own clocks; loading is not in them and has a column of its own. The first tokens must be equal: "same" says
how many of them are (bf16: transformers rounds activations to bf16 as well, megalith does not, so texts may part).
"""
import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile

PROMPT = "The quick brown fox jumps over the lazy dog and returns to the"


def parser_of(name, doc):
    """What the scripts that measure beside another program have in common: bench/generate.py, finetune.py, eval.py."""
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", default="build/release/bin")
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--work", default=os.path.join(tempfile.gettempdir(), "megalith-bench-" + name))
    return parser


def model_folder(args, dtype, make_tokenizer, scale):
    """A folder in --work, made once: GPT-2 124M's shape with random weights, matrices times `scale`, and a tokenizer."""
    folder = os.path.join(args.work, "gpt2-124m-" + dtype)
    path = os.path.join(folder, "tokenizer.json")
    if not os.path.exists(path):
        import torch
        import transformers
        torch.manual_seed(0)
        model = transformers.GPT2LMHeadModel(transformers.GPT2Config()).eval()
        with torch.no_grad():
            for parameter in model.parameters():
                if parameter.dim() == 2:
                    parameter.mul_(scale)
        model.to(torch.bfloat16 if dtype == "bf16" else torch.float32).save_pretrained(folder)
        make_tokenizer().save(path)
    return folder


def make_model(args, dtype):
    return model_folder(args, dtype, byte_tokenizer, 2.0)  # twice as large, so that logits lie apart


def byte_tokenizer():
    """A byte-level tokenizer without merges, of GPT-2's size."""
    import tokenizers
    letters = sorted(tokenizers.pre_tokenizers.ByteLevel.alphabet())
    vocabulary = {letter: i for i, letter in enumerate(letters)}
    vocabulary.update({letter + letters[i % 256] * (2 + i // 256): len(letters) + i
                       for letter in letters[:1] for i in range(50257 - len(letters) - 1)})
    tokenizer = tokenizers.Tokenizer(tokenizers.models.BPE(vocab=vocabulary, merges=[]))
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = tokenizers.decoders.ByteLevel()
    tokenizer.add_special_tokens(["<|endoftext|>"])
    return tokenizer


def prompts_of(shape):
    """The prompts of a shape such as "8x62": of equal length, each with another first letter."""
    count, length = map(int, shape.split("x"))
    text = ((PROMPT + " ") * (1 + length // len(PROMPT)))[:length].rstrip().ljust(length, ".")
    return [chr(ord("A") + i % 26) + text[1:] for i in range(count)]


def ours(args, folder, shape, extra):
    prompts = prompts_of(shape)
    path = os.path.join(args.work, "prompts")
    with open(path, "w") as file:
        file.write("\n".join(prompts) + "\n")
    command = [os.path.join(args.bin, "megalith-generate"), "--model", folder, "--prompts-file", path, "--batch-size",
               str(len(prompts)), "--max-new-tokens", str(args.tokens), "--ignore-eos", "--json", "--threads",
               str(args.threads), *extra]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    if run.returncode:
        sys.exit(run.stderr)
    number = lambda pattern: float(re.search(pattern, run.stderr).group(1).replace(",", ""))
    return dict(speed=number(r"after the first: .*\(([\d.,]+) tokens/s"),
                prompt=number(r"prompts?: .*\(([\d.,]+) tokens/s"), load=number(r"loaded in ([\d.,]+) ms"),
                tokens=json.loads(run.stdout.splitlines()[0])["tokens"])


THEIRS = """
import json, sys, time, torch, transformers
from tokenizers import Tokenizer
folder, dtype, tokens, threads, prompts = sys.argv[1:]
torch.set_num_threads(int(threads))
start = time.perf_counter()
model = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=getattr(torch, dtype)).eval()
load = time.perf_counter() - start
tokenizer = Tokenizer.from_file(folder + "/tokenizer.json")
ids = torch.tensor([tokenizer.encode(prompt).ids for prompt in json.loads(prompts)])
run = lambda n: model.generate(ids, max_new_tokens=n, do_sample=False, eos_token_id=None, pad_token_id=0)
with torch.inference_mode():
    run(3)
    start = time.perf_counter(); run(1); first = time.perf_counter() - start
    start = time.perf_counter(); out = run(int(tokens)); whole = time.perf_counter() - start
print(json.dumps(dict(speed=ids.shape[0] * (int(tokens) - 1) / (whole - first), prompt=ids.numel() / first, load=load * 1e3,
                      tokens=out[0, ids.shape[1]:].tolist())))
"""


def theirs(args, folder, dtype, shape):
    name = "bfloat16" if dtype == "bf16" else "float32"
    run = subprocess.run([sys.executable, "-c", THEIRS, folder, name, str(args.tokens), str(args.threads),
                          json.dumps(prompts_of(shape))],
                         capture_output=True, text=True, check=False)
    if run.returncode:
        sys.exit(run.stderr)
    return json.loads(run.stdout.splitlines()[-1])


def main():
    parser = parser_of("generate", __doc__)
    parser.add_argument("--tokens", type=int, default=128)
    parser.add_argument("--dtype", default="bf16,fp32")
    parser.add_argument("--prompts", default="1x62,8x62,1x256,1x850")
    args = parser.parse_args()
    print(f"{args.threads} threads, {args.tokens} new tokens, medians of {args.rounds} rounds\n")
    print("| weights | prompts | program | tokens/s | beside transformers | prompt tokens/s | beside transformers | load ms | same |")
    print("|---|---|---|--:|--:|--:|--:|--:|--:|")
    for dtype in args.dtype.split(","):
        folder = make_model(args, dtype)
        for shape in args.prompts.split(","):
            measure(args, folder, dtype, shape)


def measure(args, folder, dtype, shape):
    runs = {"transformers": lambda: theirs(args, folder, dtype, shape), "megalith": lambda: ours(args, folder, shape, [])}
    if dtype == "bf16":
        runs["megalith --int8"] = lambda: ours(args, folder, shape, ["--int8"])
    results = {name: [] for name in runs}
    for _ in range(args.rounds):
        for name, run in runs.items():
            results[name].append(run())
    median = lambda name, what: statistics.median(one[what] for one in results[name])
    beside = lambda name, what: median(name, what) / median("transformers", what)
    reference = results["transformers"][0]["tokens"]
    for name in runs:
        made = results[name][0]["tokens"]
        same = next((i for i, (a, b) in enumerate(zip(made, reference)) if a != b), len(reference))
        print(f"| {dtype} | {shape} | {name} | {median(name, 'speed'):.1f} | {beside(name, 'speed'):.2f}x "
              f"| {median(name, 'prompt'):.0f} | {beside(name, 'prompt'):.2f}x | {median(name, 'load'):.0f} "
              f"| {same} of {len(reference)} |", flush=True)


if __name__ == "__main__":
    main()
