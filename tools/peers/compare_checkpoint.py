#!/usr/bin/env python3
"""Loads what `megalith-pretrain --ckpt-format torch` saved as Megatron-LM does (training/checkpointing.py), on a CPU.

    BUILD=build/release python tools/peers/compare_checkpoint.py

For a GPT-2 and a LLaMA of a few steps: megatron-core's GPTModel (local layers) takes "model" of model_optim_rng.pt with
load_state_dict(strict=True), and its loss is the one that our evaluation of that checkpoint has; the parts of a run of
2 x 2 model ranks, joined along the axis that Megatron's own parameters name (partition_dim), do the same; Megatron's
optimizer and its scheduler take their states, and each parameter gets the moments that our own format has under its
name. "rng_state" is not written: a load needs --no-load-rng (docs/from-megatron.md).
"""
import glob, json, os, subprocess, sys, tempfile

import torch

import compare_convert as convert
import programs
from programs import BIN, say

SEQ, VOCAB, ITERS, BATCH, DECAY, LR = 12, 101, 4, 4, 3, 0.01
FAR = 2e-6  # of a loss around 4, computed in fp32 with sums in another order
SHAPE = f"--num-layers 2 --hidden-size 16 --num-attention-heads 4 --seq-length {SEQ} --max-position-embeddings {SEQ} --vocab-size {VOCAB}"
LLAMA = "--swiglu --ffn-hidden-size 32 --normalization RMSNorm --position-embedding-type rope --disable-bias-linear --untie-embeddings-and-output-weights --group-query-attention --num-query-groups 2"
RUN = (f"--micro-batch-size 2 --global-batch-size {BATCH} --lr {LR} --min-lr 0.001 --lr-decay-style cosine --lr-decay-iters {DECAY} --lr-warmup-iters 1 "
       "--attention-dropout 0 --hidden-dropout 0 --eval-iters 1 --split 1,1,0 --threads 1")


# As it is before torch.distributed is told in it that it is a launcher's only rank, which --nproc contradicts.
PLAIN = dict(os.environ)


def pretrain(folder, family, *words):
    done = subprocess.run([os.path.join(BIN, "megalith-pretrain"), *SHAPE.split(), *family.split(), *RUN.split(), "--data-path", "c_text_document", *words],
                          cwd=folder, capture_output=True, text=True, env=PLAIN)
    if done.returncode:
        raise SystemExit(f"megalith-pretrain {' '.join(words)}: {done.stderr}")


def make_data(folder):
    """Documents of SEQ ids, all alike: each sample is the same row of SEQ + 1 ids, wherever it begins."""
    row = [(7 * i * i + 3) % VOCAB for i in range(SEQ)]
    with open(f"{folder}/c.jsonl", "w") as out:
        for _ in range(400):
            out.write(json.dumps({"text": " ".join(map(str, row))}) + "\n")
    done = subprocess.run([os.path.join(BIN, "megalith-preprocess"), "--input", "c.jsonl", "--output-prefix", "c", "--tokenizer-type", "NullTokenizer",
                           "--vocab-size", str(VOCAB - 1)], cwd=folder, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(done.stderr)
    return torch.tensor([row + row[:1]])


def our_loss(folder, family, load, *words):
    pretrain(folder, family, "--eval-only", "--load", load, "--log-json", f"{load}.jsonl", *words)
    lines = [json.loads(line) for line in open(f"{folder}/{load}.jsonl")]
    return next(line["loss"] for line in lines if line["type"] == "valid")


def rank_files(folder):
    names = sorted(glob.glob(f"{folder}/iter_{ITERS:07d}/mp_rank_*/model_optim_rng.pt"))
    return [torch.load(name, weights_only=True) for name in names]


def join(ranks, tensor, layers, model):
    """The parts of the tensor ranks side by side, the pipeline ranks' layers one after the other."""
    stages = len(ranks) // tensor  # mp_rank_TT_PPP: the tensor rank changes more slowly
    here = dict(model.named_parameters())
    joined = {}
    for stage in range(stages):
        parts = [convert.local_names(ranks[rank * stages + stage]["model"]) for rank in range(tensor)]
        for name in parts[0]:
            words = name.split(".")
            if words[:2] == ["decoder", "layers"]:
                words[2] = str(int(words[2]) + stage * layers // stages)
            whole, own = ".".join(words), [part[name] for part in parts]
            if whole not in here:
                continue  # a tied head's copy on the last stage
            axis = getattr(here[whole], "partition_dim", -1) if getattr(here[whole], "tensor_model_parallel", False) else -1
            if axis < 0:
                joined[whole] = own[0]
            elif model.config.gated_linear_unit and "linear_fc1" in whole:  # each rank has its part of both halves
                joined[whole] = torch.cat([half for i in (0, 1) for half in (part.chunk(2, axis)[i] for part in own)], axis)
            else:
                joined[whole] = torch.cat(own, axis)
            if joined[whole].shape[0] > here[whole].shape[0]:  # a vocabulary padded for more ranks
                joined[whole] = joined[whole][:here[whole].shape[0]]
    return joined


def megatron_loss(model, row):
    tokens, labels = row[:, :-1], row[:, 1:]
    mask = torch.ones(1, 1, SEQ, SEQ, dtype=torch.bool).triu(1)  # true: hidden
    with torch.no_grad():
        logits = model(tokens, torch.arange(SEQ)[None], mask)[..., :VOCAB]
    return torch.nn.functional.cross_entropy(logits[0], labels[0]).item()


def check_model(name, weights, args, row, want):
    model = convert.megatron_model(args)
    try:
        model.load_state_dict(weights, strict=True)
    except RuntimeError as error:
        return say(False, f"{name}: {error}")
    say(True, f"{name}: megatron-core loads it strictly")
    got = megatron_loss(model, row)
    say(abs(got - want) <= FAR, f"{name}: megatron-core's loss {got:.7f}, ours {want:.7f}")


def engine_order(model):
    """Parameters as a model of Transformer Engine's layers names and orders them, which --ckpt-format torch writes for: linear_proj
    before linear_qkv, and a norm's before the weight of the linear layer that has it (LayerNormLinear.__init__)."""
    modules = ("self_attention.linear_proj.", "input_layernorm.", "self_attention.linear_qkv.", "pre_mlp_layernorm.", "mlp.linear_fc1.", "mlp.linear_fc2.")

    def place(entry):
        number, (name, _) = entry
        words = name.split(".")
        if words[:2] != ["decoder", "layers"]:
            return (0 if name.startswith("embedding") else 2, 0, 0, number)
        return (1, int(words[2]), next(i for i, module in enumerate(modules) if module in name), number)
    return [entry for _, entry in sorted(enumerate(model.named_parameters()), key=place)]


def check_optimizer(name, saved, moments):
    """Megatron's FP32Optimizer with the state of the file; `moments`: the tensors of our own format."""
    from megatron.core.optimizer.optimizer import FP32Optimizer
    model = convert.megatron_model(saved["args"])
    order = engine_order(model)
    groups = [{"params": [p for n, p in order if (p.dim() == 1) == bare], "wd_mult": 1.0 - bare, "lr_mult": 1.0, "is_expert_parallel": False,
               "is_decoupled_lr": False} for bare in (False, True)]
    optimizer = object.__new__(FP32Optimizer)  # its constructor asks for a GPU
    optimizer.optimizer = torch.optim.AdamW(groups)
    # Megatron's FusedAdam counts its steps in the group, torch's in each state.
    for state in saved["optimizer"]["state"].values():
        state["step"] = torch.tensor(float(saved["optimizer"]["param_groups"][0]["step"]))
    optimizer.load_state_dict(saved["optimizer"])
    wrong = []
    for parameter, tensor in order:
        state = optimizer.optimizer.state[tensor]
        for key, kind in (("exp_avg", "m"), ("exp_avg_sq", "v")):
            want, got = moments[f"optim.{kind}.{parameter}"].reshape(-1, *tensor.shape[1:]), state[key].reshape(tensor.shape)
            padding = got[len(want):]  # of a vocabulary: like its last row, as that of the weights (docs/convert.md)
            if not torch.equal(got[:len(want)], want) or not torch.equal(padding, want[-1:].expand_as(padding)):
                wrong.append(f"{kind} of {parameter}")
    say(not wrong, f"{name}: each of {2 * len(order)} moments belongs to its parameter {wrong[:3]}")
    return optimizer


def check_scheduler(name, saved, optimizer):
    """With the class's own values, all of which it compares with the file's (get_optimizer_param_scheduler counts samples)."""
    from megatron.core.optimizer_param_scheduler import OptimizerParamScheduler
    scheduler = OptimizerParamScheduler(
        optimizer.optimizer, init_lr=0.0, max_lr=LR, min_lr=0.001, lr_warmup_steps=BATCH, lr_decay_steps=DECAY * BATCH, lr_decay_style="cosine",
        start_wd=0.01, end_wd=0.01, wd_incr_steps=ITERS * BATCH, wd_incr_style="constant", use_checkpoint_opt_param_scheduler=False)
    try:
        scheduler.load_state_dict(saved["opt_param_scheduler"])
    except (AssertionError, KeyError) as error:
        return say(False, f"{name}: Megatron's scheduler: {error!r}")
    say(scheduler.num_steps == ITERS * BATCH, f"{name}: Megatron's scheduler resumes at sample {scheduler.num_steps}")


def our_tensors(folder):
    from safetensors.torch import load_file
    (path,) = glob.glob(f"{folder}/iter_{ITERS:07d}/data_*.safetensors")
    return load_file(path)


def main():
    convert.start_megatron()
    torch.serialization.add_safe_globals([__import__("argparse").Namespace])
    for name, family in (("gpt2", ""), ("llama", LLAMA)):
        with tempfile.TemporaryDirectory() as folder:
            row = make_data(folder)
            save = ["--train-iters", str(ITERS), "--save"]
            pretrain(folder, family, *save, "one", "--ckpt-format", "torch")
            pretrain(folder, family, *save, "ours")
            (saved,) = rank_files(f"{folder}/one")
            want = our_loss(folder, family, "one")
            check_model(name, convert.local_names(saved["model"]), saved["args"], row, want)
            check_scheduler(name, saved, check_optimizer(name, saved, our_tensors(f"{folder}/ours")))
            cut = ["--nproc", "4", "--tensor-model-parallel-size", "2", "--pipeline-model-parallel-size", "2"]
            pretrain(folder, family, *save, "four", "--ckpt-format", "torch", *cut)
            ranks = rank_files(f"{folder}/four")
            weights = join(ranks, 2, saved["args"].num_layers, convert.megatron_model(saved["args"]))
            check_model(f"{name}, 2 x 2 ranks", weights, saved["args"], row, our_loss(folder, family, "four", *cut))
    return programs.finish()


if __name__ == "__main__":
    sys.exit(main())
