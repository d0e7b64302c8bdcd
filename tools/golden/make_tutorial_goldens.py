#!/usr/bin/env python3
"""Make tests/dialects/ddp_tutorial/goldens: the loop of the PyTorch DDP tutorial, run by torch on one rank.

  python tools/golden/make_tutorial_goldens.py tests/dialects/ddp_tutorial/goldens \
      tests/text/goldens/trained/tokenizer.json         (torch 2.15.0, tokenizers 0.23.3, numpy 2.4.6)

text/train and text/valid hold the texts; start/model_000000.pth the weights at the beginning, and pair/ the files
that torch has saved after half of the steps (number 1), both by torch.save. tutorial.json holds the options, and the
loss and rate of each step, the norm of its gradient before clipping, and the evaluations: the mean loss of the first
batches of the validation text after the steps 0, EVAL_FREQ, … and after each epoch. All figures are computed in fp64
from the fp32 weights. The tutorial's weights are torch's and its order DistributedSampler's; here both are given:
windows in the order of numpy.random.RandomState(seed + epoch).shuffle.
"""
import json
import math
import os
import sys

os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")
import numpy as np
import tokenizers
import torch
import torch.nn.functional as F
from torch import nn

SHAPE = dict(layers=2, hidden=8, heads=2, seq=16)
EPOCHS, BATCH, SEED, STRIDE = 4, 2, 123, 16
LR, MIN_LR, INITIAL_LR, WARMUP, CLIP, DECAY = 6e-3, 1e-5, 3e-4, 10, 0.5, 0.1
EVAL_FREQ, EVAL_ITER = 5, 2


class Norm(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.scale, self.shift = nn.Parameter(torch.ones(width)), nn.Parameter(torch.zeros(width))

    def forward(self, x):
        return F.layer_norm(x, x.shape[-1:], self.scale, self.shift, 1e-5)


class Attention(nn.Module):
    def __init__(self, width, heads, positions):
        super().__init__()
        self.heads = heads
        self.W_query = nn.Linear(width, width, bias=False)
        self.W_key = nn.Linear(width, width, bias=False)
        self.W_value = nn.Linear(width, width, bias=False)
        self.out_proj = nn.Linear(width, width)
        self.register_buffer("mask", torch.triu(torch.ones(positions, positions), diagonal=1))

    def forward(self, x):
        batch, seq, width = x.shape
        parts = [f(x).view(batch, seq, self.heads, -1).transpose(1, 2) for f in (self.W_query, self.W_key, self.W_value)]
        scores = parts[0] @ parts[1].transpose(2, 3) / math.sqrt(width // self.heads)
        weights = scores.masked_fill(self.mask[:seq, :seq].bool(), -torch.inf).softmax(-1)
        return self.out_proj((weights @ parts[2]).transpose(1, 2).reshape(batch, seq, width))


class FeedForward(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(approximate="tanh"), nn.Linear(4 * width, width))

    def forward(self, x):
        return self.layers(x)


class Block(nn.Module):
    def __init__(self, width, heads, positions):
        super().__init__()
        self.att, self.ff = Attention(width, heads, positions), FeedForward(width)
        self.norm1, self.norm2 = Norm(width), Norm(width)

    def forward(self, x):
        x = x + self.att(self.norm1(x))
        return x + self.ff(self.norm2(x))


class GPTModel(nn.Module):
    """A model with the parameters of the tutorial's class of that name, in their order."""

    def __init__(self, vocab, layers, hidden, heads, seq):
        super().__init__()
        self.tok_emb, self.pos_emb = nn.Embedding(vocab, hidden), nn.Embedding(seq, hidden)
        self.trf_blocks = nn.Sequential(*[Block(hidden, heads, seq) for _ in range(layers)])
        self.final_norm = Norm(hidden)
        self.out_head = nn.Linear(hidden, vocab, bias=False)

    def forward(self, ids):
        x = self.tok_emb(ids) + self.pos_emb(torch.arange(ids.shape[1]))
        return self.out_head(self.final_norm(self.trf_blocks(x)))


def windows_of(folder, tokenizer):
    ids = []
    for name in sorted(os.listdir(folder)):
        with open(os.path.join(folder, name), encoding="utf-8") as file:
            ids += ([tokenizer.token_to_id("<|endoftext|>")] if ids else []) + tokenizer.encode(file.read()).ids
    seq = SHAPE["seq"]
    return torch.tensor([ids[at:at + seq + 1] for at in range(0, len(ids) - seq, STRIDE)])


def loss_of(model, batch):
    logits = model(batch[:, :-1])
    return F.cross_entropy(logits.flatten(0, 1), batch[:, 1:].flatten())


def rate_at(step, steps):
    if step < WARMUP:
        return INITIAL_LR + step * (LR - INITIAL_LR) / WARMUP
    share = (step - WARMUP) / (steps - WARMUP)
    return MIN_LR + (LR - MIN_LR) * 0.5 * (1 + math.cos(math.pi * share))


def validate(model, valid):
    with torch.no_grad():
        return sum(loss_of(model, valid[i * BATCH:(i + 1) * BATCH]).item() for i in range(EVAL_ITER)) / EVAL_ITER


def save(folder, number, model, optimizer=None):
    os.makedirs(folder, exist_ok=True)
    single = {name: tensor.float() for name, tensor in model.state_dict().items()}
    torch.save(single, os.path.join(folder, f"model_{number:06d}.pth"))
    if optimizer is None:
        return
    state = optimizer.state_dict()
    state["state"] = {key: {name: value.float() for name, value in one.items()} for key, one in state["state"].items()}
    torch.save(state, os.path.join(folder, f"optimizer_{number:06d}.pth"))


def train(folder, model, train_set, valid):
    optimizer = torch.optim.AdamW(model.parameters(), lr=LR, weight_decay=DECAY)
    batches = len(train_set) // BATCH
    steps, step, out = EPOCHS * batches, -1, dict(losses=[], rates=[], grad_norms=[], evaluations=[])
    for epoch in range(EPOCHS):
        order = np.arange(len(train_set))
        np.random.RandomState(SEED + epoch).shuffle(order)
        for at in range(batches):
            step += 1
            optimizer.zero_grad()
            for group in optimizer.param_groups:
                group["lr"] = rate_at(step, steps)
            loss = loss_of(model, train_set[order[at * BATCH:(at + 1) * BATCH]])
            loss.backward()
            norm = torch.nn.utils.clip_grad_norm_(model.parameters(), CLIP if step > WARMUP else math.inf)
            optimizer.step()
            for name, value in (("losses", loss.item()), ("rates", rate_at(step, steps)), ("grad_norms", norm.item())):
                out[name].append(value)
            if step % EVAL_FREQ == 0:
                out["evaluations"].append([step, validate(model, valid)])
            if step + 1 == steps // 2:
                save(os.path.join(folder, "pair"), 1, model, optimizer)
        if step % EVAL_FREQ != 0:
            out["evaluations"].append([step, validate(model, valid)])
    return out


def write_texts(folder):
    told = [f"step {i} of the long way home, said {7 * i % 11}.\n" for i in range(60)]
    for name, text in (("train/a.txt", told[:11]), ("train/b.txt", told[20:26] + ["step 26"]), ("valid/a.txt", told[40:52])):
        path = os.path.join(folder, "text", name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write("".join(text))


def main():
    folder, tokenizer = sys.argv[1], tokenizers.Tokenizer.from_file(sys.argv[2])
    torch.set_num_threads(1)
    write_texts(folder)
    train_set, valid = (windows_of(os.path.join(folder, "text", part), tokenizer) for part in ("train", "valid"))
    torch.manual_seed(SEED)
    model = GPTModel(tokenizer.get_vocab_size(), **SHAPE)
    save(os.path.join(folder, "start"), 0, model)
    out = train(folder, model.double(), train_set, valid)
    about = dict(generator=f"tools/golden/make_tutorial_goldens.py, torch {torch.__version__}", shape=SHAPE,
                 vocab=tokenizer.get_vocab_size(), windows=len(train_set), batch=BATCH, epochs=EPOCHS)
    with open(os.path.join(folder, "tutorial.json"), "w", encoding="utf-8") as file:
        json.dump(about | out, file, indent=1)
        file.write("\n")


if __name__ == "__main__":
    main()
