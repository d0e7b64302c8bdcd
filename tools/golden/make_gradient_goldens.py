#!/usr/bin/env python3
"""Make tests/train/goldens/gradients-{gpt2,llama}.safetensors: the gradients of one training step in fp64.

  python tools/golden/make_gradient_goldens.py tests/train/goldens      (torch 2.15.0, safetensors 0.8.0)

The models are written out here in torch and differentiated by it. Parameters have Megatron's names and shapes, with
fused parts as axes of their own: qkv [groups, queries of a group + 2, head, hidden], fc1 of SwiGLU [2, ffn, hidden].
Weights and tokens are not stored: they follow from noise(), which tests/train/step/gradients_test.cpp knows too; every
weight is exact in fp32. Rotary angles, the epsilon of the norms: rounded to fp32 first, as constants of the model.

Of each parameter F64 [n]: the whole gradient in row-major order when it has at most WHOLE elements, else every
STRIDE-th element of it, from the first on. The stride divides no width, so that every row and column is sampled.
Printed: the loss, and how far torch's own fp32 run is from the fp64 one.
"""
import math
import os
import sys

import torch
import torch.nn.functional as F
from safetensors.torch import save_file

LAYERS, HIDDEN, HEADS, SEQ, VOCAB, SAMPLES = 4, 128, 8, 16, 301, 8
WHOLE, STRIDE = 1024, 61
HEAD = HIDDEN // HEADS
CASES = {
    "gpt2": dict(llama=False, groups=8, ffn=512),   # learned positions, LayerNorm, biases, tanh GELU, tied head
    "llama": dict(llama=True, groups=4, ffn=320),   # RoPE, RMSNorm, SwiGLU, grouped queries, a head of its own
}
EPSILON = torch.tensor(1e-5, dtype=torch.float32).item()


def noise(name, count):
    """Whole numbers in [0, 2^32): a hash of the name and of 0 .. count - 1."""
    seed = 0
    for c in name.encode():
        seed = (seed * 31 + c) % 2**32
    x = (torch.arange(count, dtype=torch.int64) * 2654435761 + seed) % 2**32
    x = x ^ (x >> 16)
    x = (x * 73244475) % 2**32  # the product stays below 2^63
    return x ^ (x >> 16)


def weight(name, shape):
    """Even over [-1/8, 1/8) in steps of 2^-22; around 1 over [3/4, 5/4) for the norms' weights."""
    unit = (noise(name, math.prod(shape)) >> 12).double() / 2**19 - 1
    return (1 + unit / 4 if name.endswith("layernorm.weight") else unit / 8).view(shape)


def shapes(case):
    norm = ("weight",) if case["llama"] else ("weight", "bias")
    out = {"embedding.word_embeddings.weight": (VOCAB, HIDDEN)}
    if not case["llama"]:
        out["embedding.position_embeddings.weight"] = (SEQ, HIDDEN)
    for layer in range(LAYERS):
        at = f"decoder.layers.{layer}."
        linear = {
            "self_attention.linear_qkv": (case["groups"], HEADS // case["groups"] + 2, HEAD, HIDDEN),
            "self_attention.linear_proj": (HIDDEN, HEADS * HEAD),
            "mlp.linear_fc1": (2, case["ffn"], HIDDEN) if case["llama"] else (case["ffn"], HIDDEN),
            "mlp.linear_fc2": (HIDDEN, case["ffn"]),
        }
        for name, shape in linear.items():
            out[at + name + ".weight"] = shape
            if not case["llama"]:
                out[at + name + ".bias"] = shape[:-1]
        for name in ("input_layernorm", "pre_mlp_layernorm"):
            out.update({f"{at}{name}.{part}": (HIDDEN,) for part in norm})
    out.update({f"decoder.final_layernorm.{part}": (HIDDEN,) for part in norm})
    if case["llama"]:
        out["output_layer.weight"] = (VOCAB, HIDDEN)
    return out


class Model:
    def __init__(self, case, dtype):
        self.case = case
        self.params = {name: weight(name, shape).to(dtype).requires_grad_() for name, shape in shapes(case).items()}

    def norm(self, name, x):
        w = self.params[name + ".weight"]
        if self.case["llama"]:
            return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + EPSILON) * w
        return F.layer_norm(x, (HIDDEN,), w, self.params[name + ".bias"], EPSILON)

    def linear(self, name, x):
        w, b = self.params[name + ".weight"], self.params.get(name + ".bias")
        return F.linear(x, w.reshape(-1, w.shape[-1]), None if b is None else b.reshape(-1))

    def rotate(self, x):  # [b, s, heads, head]: the two halves of a head are the parts of its complex numbers
        half = HEAD // 2
        frequency = torch.tensor([10000.0 ** (-i / half) for i in range(half)], dtype=torch.float64).float()
        angle = (torch.arange(SEQ).float()[:, None] * frequency).double()
        cos, sin = (f(angle).float().to(x.dtype)[:, None, :] for f in (torch.cos, torch.sin))
        a, b = x[..., :half], x[..., half:]
        return torch.cat([a * cos - b * sin, b * cos + a * sin], -1)

    def attention(self, at, x):
        groups = self.case["groups"]
        qkv = self.linear(at + "linear_qkv", x).view(x.shape[0], SEQ, groups, HEADS // groups + 2, HEAD)
        q, k, v = qkv[..., :-2, :].flatten(2, 3), qkv[..., -2, :], qkv[..., -1, :]
        if self.case["llama"]:
            q, k = self.rotate(q), self.rotate(k)
        k, v = (t.repeat_interleave(HEADS // groups, dim=2) for t in (k, v))
        scores = torch.einsum("bqhd,bkhd->bhqk", q, k) / math.sqrt(HEAD)
        later = torch.ones(SEQ, SEQ, dtype=torch.bool).triu(1)
        out = torch.einsum("bhqk,bkhd->bqhd", scores.masked_fill(later, -math.inf).softmax(-1), v)
        return self.linear(at + "linear_proj", out.flatten(2))

    def mlp(self, at, x):
        y = self.linear(at + "linear_fc1", x)
        if self.case["llama"]:
            gate, up = y.chunk(2, dim=-1)
            return self.linear(at + "linear_fc2", F.silu(gate) * up)
        return self.linear(at + "linear_fc2", F.gelu(y, approximate="tanh"))

    def loss(self, ids):  # [b, s + 1]
        words = self.params["embedding.word_embeddings.weight"]
        x = F.embedding(ids[:, :-1], words)
        if not self.case["llama"]:
            x = x + self.params["embedding.position_embeddings.weight"]
        for layer in range(LAYERS):
            at = f"decoder.layers.{layer}."
            x = x + self.attention(at + "self_attention.", self.norm(at + "input_layernorm", x))
            x = x + self.mlp(at + "mlp.", self.norm(at + "pre_mlp_layernorm", x))
        logits = F.linear(self.norm("decoder.final_layernorm", x), self.params.get("output_layer.weight", words))
        return F.cross_entropy(logits.flatten(0, 1), ids[:, 1:].flatten())


def step(case, dtype):
    """Mean loss over all tokens, and its gradients; sample k is the ids 17 k .. 17 k + 16 of the noise."""
    model = Model(case, dtype)
    loss = model.loss((noise("tokens", SAMPLES * (SEQ + 1)) % VOCAB).view(SAMPLES, SEQ + 1))
    loss.backward()
    return loss.item(), {name: param.grad.double().flatten() for name, param in model.params.items()}


def main(folder):
    for name, case in CASES.items():
        loss, truth = step(case, torch.float64)
        single = step(case, torch.float32)[1]
        far = {n: ((single[n] - truth[n]).norm() / truth[n].norm()).item() for n in truth}
        worst = max(far, key=far.get)
        print(f"{name}: loss {loss:.6f}; torch's fp32 is at most {far[worst]:.2g} of a gradient away ({worst})")
        stored = {n: g[::STRIDE if len(g) > WHOLE else 1].contiguous() for n, g in truth.items()}
        save_file(stored, os.path.join(folder, f"gradients-{name}.safetensors"))


main(sys.argv[1])
