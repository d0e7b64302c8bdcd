#!/usr/bin/env python3
"""Make tests/parity/goldens/train-*: tiny models of each family as Hugging Face folders, and what transformers and torch
compute from them: logits, a greedy continuation, and 20 steps of AdamW.

  python tools/golden/make_train_goldens.py tests/parity/goldens [NAME …]      (torch 2.15.0, transformers 5.23.0;
                                                                  all but gpt2 and llama: transformers 5.24.0)

train-NAME/ holds config.json and model.safetensors (fp32); train-NAME.json holds the shapes, the optimizer, the
tokens (step k, row r reads seq + 1 ids from (k * batch + r) * seq: the first seq are the input, the last seq the
labels), and per step the mean loss and the norm of the gradient before clipping. All figures are computed in fp64
from the fp32 weights; `fp32_spread` is how far torch's own fp32 run is from them (greatest relative difference).
"""
import json
import os
import sys

os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")
import numpy as np
import torch
import torch.nn.functional as F
import transformers
from kinds import KINDS, model_of

STEPS = 20
CASES = {
    "train-gpt2": dict(kind="gpt2", layers=2, hidden=24, heads=3, kv_heads=3, ffn=96, seq=16, batch=4, vocab=96, clip=1.0),
    "train-llama": dict(kind="llama", layers=2, hidden=24, heads=4, kv_heads=2, ffn=56, seq=16, batch=4, vocab=96, clip=1.0),
    # Another shape, and a clip that bites at every step.
    "train-gpt2-clip": dict(kind="gpt2", layers=3, hidden=20, heads=2, kv_heads=2, ffn=36, seq=13, batch=6, vocab=61, clip=0.1),
    "train-llama-clip": dict(kind="llama", layers=1, hidden=32, heads=4, kv_heads=1, ffn=40, seq=19, batch=2, vocab=77, clip=0.1),
    # A window that is shorter than the samples.
    "train-mistral": dict(kind="mistral", layers=2, hidden=16, heads=4, kv_heads=2, ffn=40, seq=19, batch=4, vocab=77, clip=1.0,
                          window=7),
    # Heads whose channels are not hidden / heads.
    "train-qwen3": dict(kind="qwen3", layers=2, hidden=24, heads=4, kv_heads=2, head_dim=10, ffn=40, seq=16, batch=4, vocab=77, clip=1.0),
    # Every second layer without rotation.
    "train-smollm3": dict(kind="smollm3", layers=3, hidden=16, heads=4, kv_heads=2, ffn=24, seq=16, batch=4, vocab=77, clip=1.0, interval=2),
    # Those of kinds.py, whose comments say what is special in each.
    "train-phi3": dict(kind="phi3-long", layers=2, hidden=32, heads=4, kv_heads=2, ffn=40, seq=16, batch=4, vocab=77, clip=1.0),
    "train-phi4": dict(kind="phi4", layers=2, hidden=32, heads=4, kv_heads=2, ffn=40, seq=16, batch=4, vocab=77, clip=1.0),
    "train-yarn": dict(kind="yarn", layers=2, hidden=32, heads=4, kv_heads=2, ffn=40, seq=16, batch=4, vocab=77, clip=1.0),
    "train-dynamic": dict(kind="dynamic", layers=2, hidden=32, heads=4, kv_heads=2, ffn=40, seq=16, batch=4, vocab=77, clip=1.0,
                          positions=6),
    "train-starcoder2": dict(kind="starcoder2", layers=2, hidden=24, heads=4, kv_heads=2, ffn=40, seq=16, batch=4, vocab=77, clip=1.0),
    "train-stablelm": dict(kind="stablelm", layers=2, hidden=32, heads=4, kv_heads=2, ffn=40, seq=16, batch=4, vocab=77, clip=1.0),
    "train-gpt_neox": dict(kind="gpt_neox", layers=3, hidden=32, heads=4, kv_heads=4, ffn=48, seq=16, batch=4, vocab=77, clip=1.0),
    "train-falcon": dict(kind="falcon", layers=2, hidden=24, heads=4, kv_heads=2, ffn=40, seq=16, batch=4, vocab=77, clip=1.0),
    "train-falcon_7b": dict(kind="falcon_7b", layers=2, hidden=24, heads=4, kv_heads=1, ffn=40, seq=16, batch=4, vocab=77, clip=1.0),
    # A window in the last layer only.
    "train-qwen2-windows": dict(kind="qwen2", layers=2, hidden=16, heads=4, kv_heads=2, ffn=24, seq=16, batch=4, vocab=77, clip=1.0,
                                window=5, full_layers=1),
    # Norms after branches with small outputs would enlarge torch's own rounding to 2e-5, so weights are larger.
    "train-olmo2": dict(kind="olmo2", scale=16.0, layers=2, hidden=24, heads=4, kv_heads=2, ffn=40, seq=16, batch=4, vocab=77, clip=1.0),
    # Windows in all layers but every fourth.
    "train-olmo3": dict(kind="olmo3", scale=10.0, layers=4, hidden=32, heads=4, kv_heads=2, ffn=24, seq=16, batch=4, vocab=77, clip=1.0, window=5),
    "train-granite": dict(kind="granite", scale=12.0, layers=2, hidden=16, heads=4, kv_heads=2, ffn=24, seq=16, batch=4, vocab=77, clip=1.0,
                          multipliers=dict(embedding_multiplier=3.0, residual_multiplier=0.6, attention_multiplier=0.3,
                                           logits_scaling=2.5)),
}
CLASSES = dict(gpt2=transformers.GPT2LMHeadModel, llama=transformers.LlamaForCausalLM, mistral=transformers.MistralForCausalLM,
               qwen2=transformers.Qwen2ForCausalLM, qwen3=transformers.Qwen3ForCausalLM, smollm3=transformers.SmolLM3ForCausalLM,
               olmo2=transformers.Olmo2ForCausalLM, olmo3=transformers.Olmo3ForCausalLM, granite=transformers.GraniteForCausalLM)
CLASSES.update({kind: model for kind, (_, model, _) in KINDS.items()})


def llama_like(case, **more):
    """The members that the configurations of most families have in common."""
    return dict(hidden_size=case["hidden"], intermediate_size=case["ffn"], num_hidden_layers=case["layers"],
                num_attention_heads=case["heads"], num_key_value_heads=case["kv_heads"],
                max_position_embeddings=2 * case["seq"], rms_norm_eps=1e-5, vocab_size=case["vocab"], bos_token_id=0,
                eos_token_id=0, **more)


# Configurations of families whose classes take llama_like().
CONFIGS = dict(
    qwen2=lambda case: transformers.Qwen2Config(**llama_like(
        case, use_sliding_window=True, sliding_window=case["window"], max_window_layers=case["full_layers"])),
    olmo2=lambda case: transformers.Olmo2Config(**llama_like(case, pad_token_id=None)),
    granite=lambda case: transformers.GraniteConfig(**llama_like(case, **case["multipliers"])),
    olmo3=lambda case: transformers.Olmo3Config(**llama_like(case, pad_token_id=None, sliding_window=case["window"])),
)


def make_tokens(count, vocab, seed):
    """A noisy cycle, so that there is something to learn: x' = 3 x + 1 + noise, mod vocab."""
    noise = np.random.RandomState(seed).randint(0, 3, count)
    out = [seed % vocab]
    for step in noise[1:]:
        out.append((3 * out[-1] + 1 + int(step)) % vocab)
    return out


def make_model(case):
    common = dict(vocab_size=case["vocab"], bos_token_id=0, eos_token_id=0)
    if case["kind"] in KINDS:
        model = model_of(case["kind"], dict(
            hidden_size=case["hidden"], intermediate_size=case["ffn"], num_hidden_layers=case["layers"],
            num_attention_heads=case["heads"], num_key_value_heads=case["kv_heads"],
            max_position_embeddings=case.get("positions", 2 * case["seq"]), **common))
    elif case["kind"] == "gpt2":
        config = transformers.GPT2Config(
            n_positions=2 * case["seq"], n_embd=case["hidden"], n_layer=case["layers"], n_head=case["heads"],
            n_inner=case["ffn"], activation_function="gelu_new", resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0, **common)
        model = transformers.GPT2LMHeadModel(config)
    elif case["kind"] == "mistral":
        config = transformers.MistralConfig(
            hidden_size=case["hidden"], intermediate_size=case["ffn"], num_hidden_layers=case["layers"],
            num_attention_heads=case["heads"], num_key_value_heads=case["kv_heads"], head_dim=case["hidden"] // case["heads"],
            max_position_embeddings=2 * case["seq"], rms_norm_eps=1e-5, tie_word_embeddings=False,
            sliding_window=case["window"], **common)
        model = transformers.MistralForCausalLM(config)
    elif case["kind"] == "qwen3":
        config = transformers.Qwen3Config(
            hidden_size=case["hidden"], intermediate_size=case["ffn"], num_hidden_layers=case["layers"],
            num_attention_heads=case["heads"], num_key_value_heads=case["kv_heads"], head_dim=case["head_dim"],
            max_position_embeddings=2 * case["seq"], rms_norm_eps=1e-5, tie_word_embeddings=True, **common)
        model = transformers.Qwen3ForCausalLM(config)
    elif case["kind"] == "smollm3":
        config = transformers.SmolLM3Config(
            hidden_size=case["hidden"], intermediate_size=case["ffn"], num_hidden_layers=case["layers"],
            num_attention_heads=case["heads"], num_key_value_heads=case["kv_heads"], max_position_embeddings=2 * case["seq"],
            rms_norm_eps=1e-5, no_rope_layer_interval=case["interval"], pad_token_id=None, **common)
        model = transformers.SmolLM3ForCausalLM(config)
    elif case["kind"] in CONFIGS:
        model = CLASSES[case["kind"]](CONFIGS[case["kind"]](case))
    else:
        config = transformers.LlamaConfig(
            hidden_size=case["hidden"], intermediate_size=case["ffn"], num_hidden_layers=case["layers"],
            num_attention_heads=case["heads"], num_key_value_heads=case["kv_heads"],
            max_position_embeddings=2 * case["seq"], rms_norm_eps=1e-5, tie_word_embeddings=False, **common)
        model = transformers.LlamaForCausalLM(config)
    generator = torch.Generator().manual_seed(99)
    with torch.no_grad():
        for name, param in sorted(model.named_parameters()):
            # Weights of a size at which attention is not uniform; no bias or norm weight at its neutral value.
            param.mul_(case.get("scale", 4.0)) if param.dim() > 1 else param.add_(0.1 * torch.randn(param.shape, generator=generator))
    return model


def stored(name, case):
    """A parameter's name in the file: transformers 5 calls GPT-NeoX's head otherwise in memory."""
    return name.replace("lm_head", "embed_out") if case["kind"] == "gpt_neox" else name


def train(folder, case, tokens, dtype):
    model = CLASSES[case["kind"]].from_pretrained(folder, attn_implementation="eager", dtype=torch.float32).to(dtype).train()
    params = list(model.parameters())
    groups = [dict(params=[p for p in params if p.dim() > 1], weight_decay=0.1),
              dict(params=[p for p in params if p.dim() == 1], weight_decay=0.0)]
    optimizer = torch.optim.AdamW(groups, lr=1e-3, betas=(0.9, 0.95), eps=1e-8)
    batch, seq = case["batch"], case["seq"]
    out = dict(losses=[], grad_norms=[])
    for step in range(STEPS):
        at = step * batch * seq
        x = torch.tensor(tokens[at:at + batch * seq]).view(batch, seq)
        y = torch.tensor(tokens[at + 1:at + batch * seq + 1]).view(batch, seq)
        logits = model(input_ids=x, use_cache=False).logits
        loss = F.cross_entropy(logits.view(-1, case["vocab"]), y.reshape(-1))
        loss.backward()
        if step == 0:
            out["step0_param_grad_norms"] = {stored(n, case): p.grad.double().norm().item() for n, p in model.named_parameters()}
        out["grad_norms"].append(torch.nn.utils.clip_grad_norm_(params, case["clip"]).item())
        out["losses"].append(loss.item())
        optimizer.step()
        optimizer.zero_grad()
    out["final_param_norms"] = {stored(n, case): p.detach().double().norm().item() for n, p in model.named_parameters()}
    return out


def generate(folder, case, tokens):
    model = CLASSES[case["kind"]].from_pretrained(folder, attn_implementation="eager", dtype=torch.float32).double().eval()
    rows = torch.tensor(tokens[:16]).view(2, 8)
    with torch.no_grad():
        logits = model(input_ids=rows).logits
        model.generation_config.eos_token_id = None  # every id is an ordinary token here
        greedy = model.generate(rows, attention_mask=torch.ones_like(rows), max_new_tokens=16, do_sample=False, pad_token_id=0)
    return dict(input_ids=rows.tolist(), logits=[[[round(v, 9) for v in r] for r in row] for row in logits.tolist()],
                greedy=greedy.tolist())


def spread(a, b):
    return max(abs(x - y) / abs(x) for x, y in zip(a, b))


def main():
    root, names = sys.argv[1], sys.argv[2:] or list(CASES)
    for name, case in ((name, CASES[name]) for name in names):
        torch.manual_seed(1234)
        folder = os.path.join(root, name)
        make_model(case).save_pretrained(folder)
        os.remove(os.path.join(folder, "generation_config.json"))
        tokens = make_tokens(STEPS * case["batch"] * case["seq"] + 1, case["vocab"], 7)
        truth, single = train(folder, case, tokens, torch.float64), train(folder, case, tokens, torch.float32)
        result = dict(generator="tools/golden/make_train_goldens.py", torch=torch.__version__,
                      transformers=transformers.__version__, **case, steps=STEPS, lr=1e-3, betas=[0.9, 0.95], eps=1e-8,
                      weight_decay=0.1, tokens=tokens, **truth, generation=generate(folder, case, tokens),
                      fp32_spread=dict(loss=spread(truth["losses"], single["losses"]),
                                       grad_norm=spread(truth["grad_norms"], single["grad_norms"])))
        with open(os.path.join(root, name + ".json"), "w") as out:
            json.dump(result, out)
            out.write("\n")
        print(name, result["losses"][0], "->", result["losses"][-1], result["grad_norms"][:3], result["fp32_spread"])


main()
