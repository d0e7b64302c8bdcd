#!/usr/bin/env python3
"""Make tests/parity/goldens/adapters: adapters of peft for the models of make_generate_goldens.py, with the tokens and texts
that transformers continues prompts with when peft has loaded them.

  python tools/golden/make_adapter_texts.py tests [KIND …]  (torch 2.15.0, transformers 5.23.0, peft 0.21.2; qwen3: 5.24.0)

With KIND …, the texts of other kinds are left as they are.
"""
import json
import os
import sys

os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")
import peft
import torch
import transformers

PROMPTS = ["The ", "def f(x):\n", "a"]
NEW_TOKENS = 20


def adapters(kind):
    targets = ["c_attn"] if kind == "gpt2" else ["q_proj", "v_proj", "down_proj"]
    yield "lora", peft.LoraConfig(task_type="CAUSAL_LM", r=2, lora_alpha=8, target_modules=targets,
                                  fan_in_fan_out=kind == "gpt2")
    yield "prefix", peft.PrefixTuningConfig(task_type="CAUSAL_LM", num_virtual_tokens=3)


def greedy(model, ids, end):
    """Token by token without a cache: generate() of transformers 5.24 does not read peft's prefix."""
    new = []
    for _ in range(NEW_TOKENS):
        with torch.no_grad():
            logits = model(input_ids=ids, attention_mask=torch.ones_like(ids), use_cache=False).logits
        new.append(int(logits[0, -1].argmax()))
        if new[-1] == end:
            return new[:-1]
        ids = torch.cat([ids, torch.tensor([new[-1:]])], 1)
    return new


def main():
    goldens = os.path.join(sys.argv[1], "parity/goldens")
    tokenizer = transformers.PreTrainedTokenizerFast(
        tokenizer_file=os.path.join(sys.argv[1], "text/goldens/trained/tokenizer.json"), eos_token="<|endoftext|>",
        clean_up_tokenization_spaces=False)
    file_of_texts = os.path.join(goldens, "adapters/texts.json")
    texts = json.load(open(file_of_texts, encoding="utf-8"))["texts"] if sys.argv[2:] else {}
    for kind in sys.argv[2:] or ("gpt2", "llama", "qwen3"):
        for name, config in adapters(kind):
            texts[kind + "-" + name] = []
            base = transformers.AutoModelForCausalLM.from_pretrained(os.path.join(goldens, "generate-" + kind))
            torch.manual_seed(23)
            model = peft.get_peft_model(base, config).eval()
            with torch.no_grad():
                for parameter_name, parameter in model.named_parameters():
                    if "lora_" in parameter_name or "prompt" in parameter_name:
                        parameter.copy_(torch.randn_like(parameter) * 0.5)
            folder = os.path.join(goldens, "adapters", kind + "-" + name)
            model.save_pretrained(folder)
            os.remove(os.path.join(folder, "README.md"))
            config_file = os.path.join(folder, "adapter_config.json")
            with open(config_file) as file:
                saved = json.load(file)
            saved["base_model_name_or_path"] = None  # a path of this machine
            with open(config_file, "w") as file:
                json.dump(saved, file, indent=1, sort_keys=True)
                file.write("\n")
            for prompt in PROMPTS:
                ids = tokenizer(prompt, return_tensors="pt")["input_ids"]
                texts[kind + "-" + name].append({"prompt": prompt, "tokens": greedy(model, ids, tokenizer.eos_token_id)})
    with open(file_of_texts, "w", encoding="utf-8") as file:
        json.dump({"versions": {"peft": peft.__version__, "transformers": transformers.__version__, "torch": torch.__version__},
                   "new_tokens": NEW_TOKENS, "texts": texts}, file, indent=1, ensure_ascii=False)
        file.write("\n")


if __name__ == "__main__":
    main()
