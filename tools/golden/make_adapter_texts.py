#!/usr/bin/env python3
"""Make tests/parity/goldens/adapters: adapters of peft for the models of make_generate_goldens.py, with the tokens and texts
that transformers continues prompts with when peft has loaded them.

  python tools/golden/make_adapter_texts.py tests      (torch 2.15.0, transformers 5.23.0, peft 0.21.2)
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


def main():
    goldens = os.path.join(sys.argv[1], "parity/goldens")
    tokenizer = transformers.PreTrainedTokenizerFast(
        tokenizer_file=os.path.join(sys.argv[1], "text/goldens/trained/tokenizer.json"), eos_token="<|endoftext|>",
        clean_up_tokenization_spaces=False)
    texts = {}
    for kind in ("gpt2", "llama"):
        for name, config in adapters(kind):
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
                ids = tokenizer(prompt, return_tensors="pt")
                out = model.generate(**ids, max_new_tokens=NEW_TOKENS, do_sample=False, pad_token_id=0)
                new = out[0, ids["input_ids"].shape[1]:].tolist()
                if new and new[-1] == tokenizer.eos_token_id:
                    new.pop()
                texts.setdefault(kind + "-" + name, []).append({"prompt": prompt, "tokens": new})
    with open(os.path.join(goldens, "adapters/texts.json"), "w", encoding="utf-8") as file:
        json.dump({"versions": {"peft": peft.__version__, "transformers": transformers.__version__, "torch": torch.__version__},
                   "new_tokens": NEW_TOKENS, "texts": texts}, file, indent=1, ensure_ascii=False)
        file.write("\n")


if __name__ == "__main__":
    main()
