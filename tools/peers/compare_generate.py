#!/usr/bin/env python3
"""Holds megalith-generate's greedy tokens against transformers', on small random models of every family.

    BUILD=build/release python tools/peers/compare_generate.py [NAME …]

Each model is made with transformers in fp32, fp16 or bf16, and generated from as it stands, from a Megatron checkpoint
of it (tensor parallel 2 x pipeline 2; not LLaMA 3's rotary scaling, of which Megatron knows one original context only)
and from Megalith's own. transformers computes in fp32 from the stored weights, as
megalith-generate does; every token of every prompt must be equal. Prompts are shorter and longer than a sliding window
and than the eight tokens from which on matrix products take another way. Needs torch and transformers (5, or 4.57).
"""
import json, os, sys, tempfile, warnings

warnings.filterwarnings("ignore")
os.environ.update(HF_HUB_OFFLINE="1", TRANSFORMERS_VERBOSITY="error")
import torch  # noqa: E402
import transformers  # noqa: E402

import programs  # noqa: E402
from programs import LLAMA3, make_model, say  # noqa: E402

transformers.utils.logging.disable_progress_bar()
PROMPTS = ["a", "def hello_world():\n", "for i in range(10):\n    print(i", "日本語", "The harbour's books, and the rest of them. " * 3]
NEW = 40  # tokens
WIDE = dict(num_hidden_layers=4, hidden_size=96, intermediate_size=160, num_attention_heads=4, head_dim=24, initializer_range=0.25,
            num_key_value_heads=2, tie_word_embeddings=False)
GPT2 = dict(n_layer=4, n_embd=96, n_head=4, n_positions=256, initializer_range=0.25)
MODELS = {  # transformers' class and its configuration
    "gpt2": ("GPT2", GPT2),
    "llama": ("Llama", dict(WIDE)),
    "llama3": ("Llama", dict(WIDE, rope_theta=5e5, rope_scaling=LLAMA3, rope_parameters=dict(LLAMA3, rope_theta=5e5))),
    "llama-tied": ("Llama", dict(WIDE, num_key_value_heads=4, tie_word_embeddings=True)),
    "qwen2": ("Qwen2", dict(WIDE)),
    "qwen2-tied": ("Qwen2", dict(WIDE, tie_word_embeddings=True)),
    "mistral": ("Mistral", dict(WIDE, sliding_window=None)),
    "mistral-window": ("Mistral", dict(WIDE, sliding_window=20)),
    "qwen2-window": ("Qwen2", dict(WIDE, use_sliding_window=True, sliding_window=9, max_window_layers=0)),
}


def run(*words):
    done = programs.run(*words)
    return done.stdout if done.returncode == 0 else say(False, f"{' '.join(map(str, words))}: {done.stderr}")


def by_transformers(folder):
    """The continuations' tokens, each from all before it at once: no cache whose window might hide a mistake."""
    model = transformers.AutoModelForCausalLM.from_pretrained(folder, torch_dtype=torch.float32, attn_implementation="eager").eval()
    tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_file=folder + "/tokenizer.json")
    out = []
    with torch.no_grad():
        for prompt in PROMPTS:
            ids = tokenizer(prompt)["input_ids"]
            whole = list(ids)
            for _ in range(NEW):
                whole.append(int(model(torch.tensor([whole]), use_cache=False).logits[0, -1].argmax()))
            out.append(whole[len(ids):])
    return out


def check(name, dtype):
    with tempfile.TemporaryDirectory() as work:
        make_model(MODELS[name], dtype, f"{work}/hf", len(name))
        want = by_transformers(f"{work}/hf")
        sources = ["hf", "megalith"] + ["megatron"] * (name != "llama3")
        if "megatron" in sources:
            run("megalith-convert", f"{work}/hf", "--to", "megatron", "--tp", 2, "--pp", 2, "--output", f"{work}/megatron")
        run("megalith-convert", f"{work}/hf", "--to", "megalith", "--output", f"{work}/megalith")
        same = {}
        for source in sources:
            text = run("megalith-generate", "--model", f"{work}/{source}", "--max-new-tokens", NEW, "--ignore-eos", "--json",
                       *(word for prompt in PROMPTS for word in ("--prompt", prompt)))
            got = [json.loads(line)["tokens"] for line in (text or "").splitlines()]
            same[source] = sum(a == b for g, w in zip(got, want) for a, b in zip(g, w))
    whole = NEW * len(PROMPTS)
    say(all(n == whole for n in same.values()), f"{name}, {dtype}: of {whole} greedy tokens equal: " + ", ".join(f"{n} from {source}" for source, n in same.items()))


def main():
    print(f"transformers {transformers.__version__}")
    for name in sys.argv[1:] or MODELS:
        for dtype in ("float32", "float16", "bfloat16"):
            check(name, dtype)
    return programs.finish()


if __name__ == "__main__":
    sys.exit(main())
