#!/usr/bin/env python3
"""Makes tests/convert/goldens/lora_*: adapters of peft for the models there, with the merged weights.

    python tools/golden/make_adapter_goldens.py tests/convert/goldens

Made with peft 0.21.2, transformers 5.23.0, torch 2.15.0, safetensors 0.8.0.
lora_NAME/                    save_pretrained() of the adapter
lora_NAME.merged.safetensors  the weights that merge_and_unload() changes
"""
import os
import sys

import torch
from peft import LoraConfig, get_peft_model
from safetensors.torch import save_file
from transformers import AutoModelForCausalLM

CONFIGS = {
    "gpt2": LoraConfig(r=3, lora_alpha=7, target_modules=["c_attn", "c_fc"], fan_in_fan_out=True, task_type="CAUSAL_LM"),
    "llama": LoraConfig(r=4, lora_alpha=6, use_rslora=True, rank_pattern={"gate_proj": 2}, alpha_pattern={"layers.1.self_attn.q_proj": 9},
                        target_modules=["q_proj", "v_proj", "o_proj", "gate_proj"], task_type="CAUSAL_LM"),
}


def main(out):
    for name, config in CONFIGS.items():
        base = AutoModelForCausalLM.from_pretrained(os.path.join(out, name))
        before = {k: v.clone() for k, v in base.state_dict().items()}
        model = get_peft_model(base, config)
        generator = torch.Generator().manual_seed(5)
        with torch.no_grad():
            for key, p in model.named_parameters():
                if "lora_" in key:
                    p.copy_(0.3 * torch.randn(p.shape, generator=generator))
        model.peft_config["default"].base_model_name_or_path = name
        folder = os.path.join(out, "lora_" + name)
        model.save_pretrained(folder)
        os.remove(os.path.join(folder, "README.md"))
        merged = model.merge_and_unload().state_dict()
        changed = {k: v.contiguous() for k, v in merged.items() if not torch.equal(v, before[k])}
        save_file(changed, os.path.join(out, f"lora_{name}.merged.safetensors"))


main(sys.argv[1])
