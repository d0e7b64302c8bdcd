#!/usr/bin/env python3
"""bench/step.py: training steps on the CPU beside compiled PyTorch, and the share of what this machine's matrix products
reach in the same run.

    bench/step.py [--bin build/release/bin] [--torch PYTHON] [--rows "124M bf16;tiny GPT-2 fp32"] [--turns 3] [--steps 4]
                  [--threads 2]

--torch: a Python with torch, whose torch.compile needs a C++ compiler; without it there are no peers. In each turn the
programs run one after the other: bench_products (the best of oneDNN's products at the model's shapes), megalith-pretrain
and PyTorch. A row has the medians of the turns. Both train the same architecture from random weights on random ids with
AdamW and fp32 master weights, without dropout; PyTorch computes bf16 under autocast. The first step of a run is left
out.

Share of peak = tokens/s * (6 * parameters + 7 L d T) / the rate of products, where parameters are those that take part in
products (the table of positions does not), and attention counts causally: a token sees T / 2 others on average, so scores
and their products with values are 2 d T operations a layer forward, and 2.5 times as many backward, where scores are
computed again."""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

# name: (layers, width, heads, key heads, ffn, vocabulary, tokens of a sample, samples, llama?)
MODELS = {
    "124M": (12, 768, 12, 12, 3072, 50257, 1024, 4, False),
    "tiny GPT-2": (4, 256, 8, 8, 1024, 4096, 256, 8, False),
    "tiny LLaMA": (4, 256, 8, 8, 704, 4096, 256, 8, True),
    "LLaMA 160M": (12, 768, 12, 3, 2048, 32000, 1024, 4, True),
}
ROWS = ["124M bf16", "124M fp32", "tiny GPT-2 fp32", "tiny LLaMA fp32", "LLaMA 160M bf16"]


def flops_of_a_token(model):
    layers, width, heads, key_heads, ffn, vocabulary, length, _, llama = model
    kv = width // heads * key_heads
    linear = layers * (width * (width + 2 * kv) + width * width + (3 if llama else 2) * width * ffn)
    return 6 * (linear + vocabulary * width) + 7 * layers * width * length


def make_data(args, folder, vocabulary, length):
    ids = " ".join(str(i * 7919 % (vocabulary - 1)) for i in range(8 * length))
    (folder / "text.jsonl").write_text("".join(json.dumps({"text": ids}) + "\n" for _ in range(32)))
    subprocess.run([args.bin / "megalith-preprocess", "--input", folder / "text.jsonl", "--output-prefix", folder / "data",
                    "--json-keys", "text", "--tokenizer-type", "NullTokenizer", "--vocab-size", str(vocabulary - 1)],
                   check=True, capture_output=True)


def command_of(args, model, dtype, folder):
    layers, width, heads, key_heads, ffn, vocabulary, length, samples, llama = model
    family = (f"--swiglu --normalization RMSNorm --position-embedding-type rope --disable-bias-linear "
              f"--untie-embeddings-and-output-weights --group-query-attention --num-query-groups {key_heads}" if llama else "")
    return (f"{args.bin}/megalith-pretrain --num-layers {layers} --hidden-size {width} --num-attention-heads {heads} "
            f"--ffn-hidden-size {ffn} --seq-length {length} --max-position-embeddings {length} --vocab-size {vocabulary} {family} "
            f"--attention-dropout 0 --hidden-dropout 0 --lr 1e-4 --eval-iters 0 --split 100,0,0 --log-interval 1 "
            f"--micro-batch-size {samples} --global-batch-size {samples} --train-iters {args.steps + 1} "
            f"--threads {args.threads} --data-path {folder}/data_text_document {'--bf16' if dtype == 'bf16' else ''}")


def ours(args, model, dtype, folder):
    log = folder / "log.jsonl"
    log.unlink(missing_ok=True)
    run = subprocess.Popen([*command_of(args, model, dtype, folder).split(), "--log-json", str(log)], stdout=subprocess.PIPE,
                           stderr=subprocess.STDOUT, text=True)
    said = run.stdout.read()
    _, status, usage = os.wait4(run.pid, 0)
    if status:
        sys.exit(said[-2000:])
    rates = [line["tokens_per_s"] for line in map(json.loads, log.open()) if line["type"] == "train"][1:]
    return dict(rate=statistics.median(rates), memory=usage.ru_maxrss / 2**20)


TORCH = r"""
import json, sys, time, resource, torch
import torch.nn as nn, torch.nn.functional as F
layers, d, heads, kv_heads, ffn, V, T, B, llama, dtype, threads, steps, compiled = json.loads(sys.argv[1])
torch.set_num_threads(threads); torch.manual_seed(0)
head = d // heads
bias = not llama
norm = lambda: nn.RMSNorm(d, eps=1e-5) if llama else nn.LayerNorm(d)
if llama:
    angle = torch.outer(torch.arange(T).float(), 10000.0 ** (-torch.arange(0, head, 2).float() / head))
    cos, sin = torch.cat([angle, angle], 1).cos(), torch.cat([angle, angle], 1).sin()
    rotate = lambda x: x * cos + torch.cat([-x[..., head // 2:], x[..., :head // 2]], -1) * sin
class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.n1, self.n2 = norm(), norm()
        self.qkv = nn.Linear(d, d + 2 * kv_heads * head, bias=bias); self.proj = nn.Linear(d, d, bias=bias)
        self.up = nn.Linear(d, (2 if llama else 1) * ffn, bias=bias); self.down = nn.Linear(ffn, d, bias=bias)
    def forward(self, x):
        q, k, v = self.qkv(self.n1(x)).split([d, kv_heads * head, kv_heads * head], -1)
        q, k, v = (t.view(x.shape[0], T, -1, head).transpose(1, 2) for t in (q, k, v))
        if llama: q, k = rotate(q).to(v.dtype), rotate(k).to(v.dtype)
        a = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=kv_heads != heads)
        x = x + self.proj(a.transpose(1, 2).reshape(x.shape))
        h = self.up(self.n2(x))
        if llama:
            gate, up = h.chunk(2, -1); h = F.silu(gate) * up
        else:
            h = F.gelu(h, approximate="tanh")
        return x + self.down(h)
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(V, d); self.positions = None if llama else nn.Embedding(T, d)
        self.blocks = nn.ModuleList(Block() for _ in range(layers)); self.norm = norm()
        self.out = nn.Linear(d, V, bias=False)
        if not llama: self.out.weight = self.table.weight
        for p in self.parameters():
            if p.dim() > 1: nn.init.normal_(p, 0, 0.02)
    def forward(self, ids, labels):
        x = self.table(ids)
        if not llama: x = x + self.positions.weight
        for block in self.blocks: x = block(x)
        return F.cross_entropy(self.out(self.norm(x)).float().view(-1, V), labels.view(-1))
model = Model()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, betas=(0.9, 0.999), weight_decay=0.01, fused=True)
run = torch.compile(model) if compiled else model
ids = torch.randint(0, V - 1, (B, T + 1))
times = []
for step in range(steps + 1):
    start = time.perf_counter()
    with torch.autocast("cpu", torch.bfloat16, enabled=dtype == "bf16"):
        loss = run(ids[:, :-1].contiguous(), ids[:, 1:].contiguous())
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step(); optimizer.zero_grad(set_to_none=True); loss.item()
    times.append(time.perf_counter() - start)
times = sorted(times[1:])
print(json.dumps(dict(rate=B * T / times[len(times) // 2], memory=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20)))
"""


def torch_step(args, model, dtype, compiled):
    given = json.dumps([*model, dtype, args.threads, args.steps, compiled])
    run = subprocess.run([args.torch, "-c", TORCH, given], capture_output=True, text=True, check=False)
    if run.returncode:
        sys.exit(run.stderr[-2000:])
    return json.loads(run.stdout.splitlines()[-1])


def peak(args, model, dtype):
    """The best rate of oneDNN's products at the model's shapes, GFLOP/s."""
    layers, width, heads, key_heads, ffn, _, length, samples, llama = model
    shapes = {(width, width + 2 * (width // heads) * key_heads), (width, (2 if llama else 1) * ffn), (ffn, width)}
    command = [args.bin / "bench_products", dtype, str(args.threads), str(length * samples),
               *[f"{i}x{o}" for i, o in sorted(shapes)]]
    run = subprocess.run(command, capture_output=True, text=True, check=True)
    return max(json.loads(line)["gflops"] for line in run.stdout.splitlines())


def processor():
    fields = dict(line.split(":", 1) for line in open("/proc/cpuinfo").read().split("\n\n")[0].splitlines() if ":" in line)
    named = {key.strip(): value.strip() for key, value in fields.items()}
    return f"{named.get('model name', '?')} (family {named.get('cpu family', '?')}, model {named.get('model', '?')})"


def measure(args, name):
    kind, dtype = name.rsplit(" ", 1)
    model = MODELS[kind]
    runs = {"megalith": lambda folder: ours(args, model, dtype, folder)}
    if args.torch:
        runs["compiled PyTorch"] = lambda _: torch_step(args, model, dtype, True)
        runs["eager PyTorch"] = lambda _: torch_step(args, model, dtype, False)
    results, peaks = {one: [] for one in runs}, []
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        make_data(args, folder, model[5], model[6])
        for turn in range(args.turns):
            peaks.append(peak(args, model, dtype))
            for one in list(runs)[::-1 if turn % 2 else 1]:
                results[one].append(runs[one](folder))
    best, base = statistics.median(peaks), statistics.median(r["rate"] for r in results["megalith"])
    for one, of in results.items():
        rates = [r["rate"] for r in of]
        rate = statistics.median(rates)
        shares = [r * flops_of_a_token(model) * 1e-9 / p for r, p in zip(rates, peaks)]
        print(f"| {name} | {one} | {rate:.0f} ({min(rates):.0f} - {max(rates):.0f}) | {rate * flops_of_a_token(model) * 1e-9:.0f} "
              f"| {best:.0f} | {100 * statistics.median(shares):.0f} % | {base / rate:.2f} "
              f"| {statistics.median(r['memory'] for r in of):.2f} |", flush=True)


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--bin", default="build/release/bin", type=pathlib.Path)
    options.add_argument("--torch", default="")
    options.add_argument("--rows", default=";".join(ROWS))
    options.add_argument("--turns", type=int, default=3)
    options.add_argument("--steps", type=int, default=4)
    options.add_argument("--threads", type=int, default=os.cpu_count())
    args = options.parse_args()
    print(f"{processor()}, {args.threads} threads, medians of {args.turns} turns\n")
    print("| row | program | tokens/s (min - max) | GFLOP/s | products' GFLOP/s | share | megalith is faster by | GiB |")
    print("|---|---|--:|--:|--:|--:|--:|--:|")
    for name in args.rows.split(";"):
        measure(args, name)


if __name__ == "__main__":
    main()
