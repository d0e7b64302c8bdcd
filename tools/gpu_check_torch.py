#!/usr/bin/env python3
"""The baseline of tools/gpu_check: GPT-2 124M in PyTorch on the GPU, as a user would write it to be fast: bf16, each block compiled,
scaled_dot_product_attention, fused AdamW, 65,536 tokens a step in microbatches of 16. Prints a JSON object with the median of the steps
after a warm-up. Exits 69 where PyTorch sees no GPU. --quick: a tiny model."""
import json
import statistics
import sys
import time

import torch
import torch.nn as nn
import torch.nn.functional as F


class Block(nn.Module):
    def __init__(self, hidden, heads):
        super().__init__()
        self.heads = heads
        self.norms = nn.ModuleList([nn.LayerNorm(hidden), nn.LayerNorm(hidden)])
        self.qkv, self.out = nn.Linear(hidden, 3 * hidden), nn.Linear(hidden, hidden)
        self.up, self.down = nn.Linear(hidden, 4 * hidden), nn.Linear(4 * hidden, hidden)

    def forward(self, x):
        batch, length, hidden = x.shape
        parts = self.qkv(self.norms[0](x)).view(batch, length, 3, self.heads, hidden // self.heads)
        q, k, v = (part.transpose(1, 2) for part in parts.unbind(2))
        seen = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(seen.transpose(1, 2).reshape(batch, length, hidden))
        return x + self.down(F.gelu(self.up(self.norms[1](x)), approximate="tanh"))


class Gpt2(nn.Module):
    def __init__(self, layers, hidden, heads, vocabulary, length):
        super().__init__()
        self.tokens, self.positions = nn.Embedding(vocabulary, hidden), nn.Embedding(length, hidden)
        self.blocks = nn.ModuleList([Block(hidden, heads) for _ in range(layers)])
        self.norm = nn.LayerNorm(hidden)

    def forward(self, ids, targets):
        x = self.tokens(ids) + self.positions.weight[: ids.shape[1]]
        for block in self.blocks:
            x = block(x)
        return F.cross_entropy((self.norm(x) @ self.tokens.weight.t()).flatten(0, 1).float(), targets.flatten())


def main():
    if not torch.cuda.is_available():
        print("PyTorch sees no GPU", file=sys.stderr)
        return 69
    quick = "--quick" in sys.argv[1:]
    layers, hidden, heads, vocabulary, length, micro, count = (2, 64, 2, 512, 32, 2, 2) if quick else (12, 768, 12, 50304, 1024, 16, 4)
    torch.manual_seed(1)
    torch.set_float32_matmul_precision("high")
    model = Gpt2(layers, hidden, heads, vocabulary, length).cuda()
    for block in model.blocks:
        block.compile()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
    ids = torch.randint(0, vocabulary, (micro, length + 1), device="cuda")
    seconds = []
    for _ in range(6 if quick else 40):
        torch.cuda.synchronize()
        begin = time.perf_counter()
        for _ in range(count):
            with torch.autocast("cuda", torch.bfloat16):
                loss = model(ids[:, :-1], ids[:, 1:]) / count
            loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        torch.cuda.synchronize()
        seconds.append(time.perf_counter() - begin)
    median = statistics.median(seconds[len(seconds) // 4 :])
    print(json.dumps({"version": torch.__version__, "tokens_per_s": count * micro * length / median, "loss": count * loss.item()}))
    return 0


sys.exit(main())
