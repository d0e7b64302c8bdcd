#!/usr/bin/env python3
"""bench/finetune.py: megalith-finetune beside peft and transformers, on a random model of GPT-2 124M's shape.

    bench/finetune.py [--bin build/release/bin] [--threads 2] [--rounds 3] [--steps 6] [--work DIR]

Needs torch, transformers and peft. Rows: LoRA (rank 8 on c_attn) on batches of 4 records of 512 tokens in fp32; and
records of Alpaca's lengths (5 to 512 tokens, most below 100), padded batches of 4 and, with megalith, packed ones. Each
round runs the programs one after the other; the table has medians of records' tokens a second over all steps but the
first, and the max memory of each process. The model and the records are made once and kept in --work.
"""
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile

from generate import make_model, parser_of

LENGTHS = {"512": None, "alpaca": (4.2, 0.75)}  # mean and deviation of the logarithm


def make_records(path, kind, count):
    """Each byte is a token of make_model()'s tokenizer."""
    numbers = random.Random(1)
    with open(path, "w") as file:
        for _ in range(count):
            length = 512 if kind == "512" else min(512, max(12, round(numbers.lognormvariate(*LENGTHS[kind]))))
            question = max(4, length // 3)
            letters = [numbers.choice("abcdefghijklmnopqrstuvwxyz ") for _ in range(length - 1)]
            json.dump({"src": "".join(letters[:question]), "tgt": "".join(letters[question:])}, file)
            file.write("\n")


def measured(command):
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    if run.returncode:
        sys.exit(run.stderr + run.stdout)
    return run.stdout


def ours(args, folder, records, extra):
    out = tempfile.mkdtemp(dir=args.work)
    log = os.path.join(out, "log.jsonl")
    command = ["/usr/bin/env", "time", "-f", "%M", "-o", out + "/memory", os.path.join(args.bin, "megalith-finetune"), "--model", folder,
               "--data", records, "--output-dir", out, "--max-steps", str(args.steps), "--micro-batch-size", "4", "--lr", "1e-4",
               "--lora", "--lora-rank", "8", "--target-modules", "c_attn", "--max-length", "513", "--attention-dropout", "0",
               "--hidden-dropout", "0", "--threads", str(args.threads), "--log-json", log, *extra]
    measured(command)
    steps = [line for line in map(json.loads, open(log)) if line["type"] == "train"][1:]
    return dict(milliseconds=[s["ms"] for s in steps], memory=int(open(out + "/memory").read()) / 2**20)


THEIRS = """
import json, resource, sys, time, torch, transformers
from peft import LoraConfig, get_peft_model
folder, records, steps, threads = sys.argv[1:]
torch.set_num_threads(int(threads))
model = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
for name in ("attn_pdrop", "resid_pdrop", "embd_pdrop"): setattr(model.config, name, 0.0)
for module in model.modules():
    if isinstance(module, torch.nn.Dropout): module.p = 0.0
model = get_peft_model(model, LoraConfig(r=8, lora_alpha=16, target_modules=["c_attn"], fan_in_fan_out=True, task_type="CAUSAL_LM"))
optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=1e-4, weight_decay=0)
rows = [json.loads(line) for line in open(records)]
times, tokens = [], []
model.train()
for step in range(int(steps)):
    batch = rows[step * 4:step * 4 + 4]
    longest = max(len(r["src"]) + len(r["tgt"]) + 1 for r in batch)
    ids = torch.zeros(4, longest, dtype=torch.long); labels = torch.full_like(ids, -100); seen = torch.zeros_like(ids)
    for i, r in enumerate(batch):
        text = [97 + ord(c) % 26 for c in r["src"] + r["tgt"]] + [50256]
        ids[i, :len(text)] = torch.tensor(text); seen[i, :len(text)] = 1
        labels[i, len(r["src"]):len(text)] = ids[i, len(r["src"]):len(text)]
    start = time.perf_counter()
    loss = model(input_ids=ids, labels=labels, attention_mask=seen).loss
    optimizer.zero_grad(); loss.backward()
    torch.nn.utils.clip_grad_norm_([p for p in model.parameters() if p.requires_grad], 1.0)
    optimizer.step()
    times.append((time.perf_counter() - start) * 1e3)
print(json.dumps(dict(milliseconds=times[1:], memory=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20)))
"""


def theirs(args, folder, records):
    out = measured([sys.executable, "-c", THEIRS, folder, records, str(args.steps), str(args.threads)])
    return json.loads(out.splitlines()[-1])


def main():
    parser = parser_of("finetune", __doc__)
    parser.add_argument("--steps", type=int, default=6)
    args = parser.parse_args()
    folder = make_model(args, "fp32")
    print(f"{args.threads} threads, {args.steps} steps, medians of {args.rounds} rounds\n")
    print("| records | program | ms a step | tokens/s | beside peft | memory GiB |\n|---|---|--:|--:|--:|--:|")
    for kind in LENGTHS:
        records = os.path.join(args.work, kind + ".jsonl")
        count = 4 * args.steps if kind == "512" else 40 * args.steps
        make_records(records, kind, count)
        lengths = [len(r["src"]) + len(r["tgt"]) for r in map(json.loads, open(records))]
        mean = statistics.mean(lengths)
        runs = {"peft": lambda: theirs(args, folder, records), "megalith": lambda: ours(args, folder, records, [])}
        if kind != "512":
            runs["megalith --packing"] = lambda: ours(args, folder, records, ["--packing"])
        results = {name: [] for name in runs}
        for _ in range(args.rounds):
            for name, run in runs.items():
                results[name].append(run())
        speeds = {}
        for name in runs:
            step = statistics.median(statistics.mean(r["milliseconds"]) for r in results[name])
            # A packed sequence holds as many records as fit: first-fit leaves little room.
            each = 512 if name.endswith("packing") else mean
            speeds[name] = 4 * each / step * 1e3
            memory = statistics.median(r["memory"] for r in results[name])
            print(f"| {kind} | {name} | {step:.0f} | {speeds[name]:.0f} | {speeds[name] / speeds['peft']:.2f}x | {memory:.2f} |", flush=True)


if __name__ == "__main__":
    main()
