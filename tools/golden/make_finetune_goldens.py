#!/usr/bin/env python3
"""Makes tests/finetune/goldens: 20 steps of tuning small models with transformers and peft, in fp32 on the CPU.

    python tools/golden/make_finetune_goldens.py tests/finetune/goldens [FAMILY …]

Versions are in each FAMILY.json. FAMILY is gpt2, llama, qwen2, qwen3, phi3, gpt_neox.
samples.json            80 samples, four a step: ids, and how many of them are the question
pairs.json              80 samples of 40 preferences, two a step: the chosen and the rejected answer to one question
FAMILY/                 the model
FAMILY-METHOD/          the adapter of peft that the method begins with (B is not zero)
FAMILY.json             by method the losses, gradient norms and, after the last step, the loss on the first step's samples.
                        loraplus begins with the adapter of lora, and takes B's rate 16 times as great (peft's optimizer of LoRA+).
                        dpo-full and dpo-lora learn pairs.json by direct preference optimization (Rafailov et al. 2023, beta 0.3), the
                        reference being the model before its first step, without the adapter
"""
import json
import os
import random
import sys

import peft
import torch
import transformers
from peft import LoraConfig, PeftModel, PrefixTuningConfig, get_peft_model
from peft.optimizers import create_loraplus_optimizer

STEPS, BATCH, LENGTH, VOCAB = 20, 4, 24, 61
SIZES = dict(vocab_size=VOCAB, hidden_size=16, intermediate_size=32, num_hidden_layers=4, num_attention_heads=4, num_key_value_heads=2,
             max_position_embeddings=32, initializer_range=0.15, bos_token_id=0, eos_token_id=1)
FAMILIES = {
    "gpt2": transformers.GPT2Config(vocab_size=VOCAB, n_embd=16, n_inner=32, n_layer=4, n_head=4, n_positions=32, initializer_range=0.15,
                                    attn_pdrop=0.0, resid_pdrop=0.0, embd_pdrop=0.0, bos_token_id=0, eos_token_id=1),
    "llama": transformers.LlamaConfig(tie_word_embeddings=False, **SIZES),
    "qwen2": transformers.Qwen2Config(tie_word_embeddings=True, **SIZES),
    "qwen3": transformers.Qwen3Config(tie_word_embeddings=True, head_dim=6, **SIZES),
    # Half of each head is rotated.
    "phi3": transformers.Phi3Config(rope_parameters=dict(rope_type="default", rope_theta=10000.0, partial_rotary_factor=0.5),
                                    pad_token_id=None, **SIZES),
    "gpt_neox": transformers.GPTNeoXConfig(rope_parameters=dict(rope_type="default", rope_theta=10000.0, partial_rotary_factor=0.5),
                                           **{k: v for k, v in SIZES.items() if k != "num_key_value_heads"}),
}
ALL = {"gpt2": ["c_attn", "c_proj", "c_fc"], "llama": ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"],
       "phi3": ["qkv_proj", "o_proj", "gate_up_proj", "down_proj"],
       "gpt_neox": ["query_key_value", "dense", "dense_h_to_4h", "dense_4h_to_h"]}
FEW = {"gpt2": ["c_attn"], "llama": ["q_proj", "v_proj"], "phi3": ["qkv_proj"], "gpt_neox": ["query_key_value"]}


def methods(family):
    key = family if family in ALL else "llama"
    common = dict(task_type="CAUSAL_LM", fan_in_fan_out=family == "gpt2", lora_dropout=0.0)
    return {
        "full": None,
        "lora": LoraConfig(r=4, lora_alpha=8, target_modules=ALL[key], **common),
        "prefix": PrefixTuningConfig(num_virtual_tokens=5, task_type="CAUSAL_LM"),
        "rslora": LoraConfig(r=2, lora_alpha=3, use_rslora=True, target_modules=FEW[key], **common),
    }


def make_samples():
    numbers = random.Random(7)
    samples = []
    for _ in range(STEPS * BATCH):
        length = numbers.randint(6, LENGTH)
        start, step = numbers.randrange(2, VOCAB), numbers.choice([1, 3, 5])
        ids = [2 + (start + i * step) % (VOCAB - 2) for i in range(length - 1)] + [1]
        samples.append({"ids": ids, "question": numbers.randint(2, length - 3)})
    return samples


def make_pairs():
    """Questions with two answers, of which the chosen one continues with the question's steps."""
    numbers = random.Random(8)
    samples = []
    for _ in range(STEPS * BATCH // 2):
        start, step, question = numbers.randrange(2, VOCAB), numbers.choice([1, 3, 5]), numbers.randint(2, 10)
        for other in (0, 7):
            length = numbers.randint(question + 2, LENGTH)
            ids = [2 + (start + i * step + (other if i >= question else 0)) % (VOCAB - 2) for i in range(length - 1)] + [1]
            samples.append({"ids": ids, "question": question})
    return samples


def batch_of(samples):
    longest = max(len(s["ids"]) for s in samples)
    ids = torch.zeros(len(samples), longest, dtype=torch.long)
    labels = torch.full_like(ids, -100)
    seen = torch.zeros_like(ids)
    for row, s in enumerate(samples):
        n = len(s["ids"])
        ids[row, :n] = torch.tensor(s["ids"])
        labels[row, s["question"]:n] = ids[row, s["question"]:n]
        seen[row, :n] = 1
    return dict(input_ids=ids, labels=labels, attention_mask=seen)


def log_probabilities(model, batch):
    """The sum over the tokens of each answer."""
    labels = batch["labels"][:, 1:]
    logits = model(input_ids=batch["input_ids"], attention_mask=batch["attention_mask"]).logits[:, :-1]
    each = torch.log_softmax(logits, -1).gather(-1, labels.clamp(min=0).unsqueeze(-1)).squeeze(-1)
    return (each * (labels >= 0)).sum(-1)


def preference_loss(model, reference, batch, beta=0.3):
    with torch.no_grad():
        before = log_probabilities(reference, batch)
    gain = log_probabilities(model, batch) - before
    return -torch.nn.functional.logsigmoid(beta * (gain[0::2] - gain[1::2])).mean()


def train(model, samples, lr, reference=None, ratio=None):
    loss_of = (lambda batch: model(**batch).loss) if reference is None else (lambda batch: preference_loss(model, reference, batch))
    decayed = [p for n, p in model.named_parameters() if p.requires_grad and not (n.endswith("bias") or "norm" in n or ".ln_" in n)]
    rest = [p for n, p in model.named_parameters() if p.requires_grad and (n.endswith("bias") or "norm" in n or ".ln_" in n)]
    optimizer = torch.optim.AdamW([dict(params=decayed, weight_decay=0.01), dict(params=rest, weight_decay=0.0)], lr=lr)
    if ratio:
        optimizer = create_loraplus_optimizer(model=model, optimizer_cls=torch.optim.AdamW, lr=lr, loraplus_lr_ratio=ratio,
                                              loraplus_weight_decay=0.01)
    schedule = transformers.get_scheduler("linear", optimizer, num_warmup_steps=2, num_training_steps=STEPS)
    model.train()
    losses, norms = [], []
    for step in range(STEPS):
        loss = loss_of(batch_of(samples[step * BATCH:(step + 1) * BATCH]))
        optimizer.zero_grad()
        loss.backward()
        norms.append(torch.nn.utils.clip_grad_norm_([p for p in model.parameters() if p.requires_grad], 1.0).item())
        optimizer.step()
        schedule.step()
        losses.append(loss.item())
    model.eval()
    with torch.no_grad():
        last = loss_of(batch_of(samples[:BATCH])).item()
    return dict(lr=lr, losses=losses, grad_norms=norms, after=last)


def load(folder):
    return transformers.AutoModelForCausalLM.from_pretrained(folder, attn_implementation="eager", dtype=torch.float32)


def begun(folder, adapter):
    """A model with the adapter that was saved."""
    return PeftModel.from_pretrained(load(folder), adapter, is_trainable=True)


def write_samples(path, samples):
    with open(path, "w") as file:
        file.write("[\n" + ",\n".join(json.dumps(s) for s in samples) + "\n]\n")


def main(out, *only):
    os.makedirs(out, exist_ok=True)
    samples, pairs = make_samples(), make_pairs()
    write_samples(os.path.join(out, "samples.json"), samples)
    write_samples(os.path.join(out, "pairs.json"), pairs)
    for family, config in ((name, FAMILIES[name]) for name in only or FAMILIES):
        torch.manual_seed(11)
        folder = os.path.join(out, family)
        transformers.AutoModelForCausalLM.from_config(config, attn_implementation="eager").save_pretrained(folder)
        results = dict(made_with=dict(torch=torch.__version__, transformers=transformers.__version__, peft=peft.__version__), methods={})
        for method, settings in methods(family).items():
            model = load(folder)
            if settings is not None:
                model = get_peft_model(model, settings)
                generator = torch.Generator().manual_seed(5)
                with torch.no_grad():
                    for name, p in model.named_parameters():
                        if "lora_" in name or "prompt_encoder" in name:
                            p.copy_((0.1 if "lora_" in name else 1.0) * torch.randn(p.shape, generator=generator))
                model.peft_config["default"].base_model_name_or_path = family
                model.save_pretrained(os.path.join(out, f"{family}-{method}"))
                os.remove(os.path.join(out, f"{family}-{method}", "README.md"))
            results["methods"][method] = train(model, samples, 5e-3 if settings is None else 2e-2)
        lora, reference = os.path.join(out, f"{family}-lora"), load(folder).eval()
        results["methods"]["loraplus"] = train(begun(folder, lora), samples, 2e-3, ratio=16)
        results["methods"]["dpo-full"] = train(load(folder), pairs, 1e-3, reference)
        results["methods"]["dpo-lora"] = train(begun(folder, lora), pairs, 4e-3, reference)
        with open(os.path.join(out, family + ".json"), "w") as file:
            json.dump(results, file, indent=1)
            file.write("\n")


main(*sys.argv[1:])
