#!/usr/bin/env python3
"""Makes tests/convert/goldens/families: one small random model of each LLaMA-like kind, with logits.

    python tools/golden/make_family_goldens.py tests/convert/goldens/families [NAME …]

Made with transformers 5.23.0 (qwen3, smollm3 and those of kinds.py: 5.24.0), torch 2.15.0, safetensors 0.8.0. With NAME …, makes only these.
qwen2/ (biased queries, keys and values; tied head)  mistral/ (sliding window of 5)
llama3/ (rope_type llama3)  linear/ (rope_type linear)  qwen3/ (norms on queries and keys; tied head)
smollm3/ (the second of two layers without rotation)  olmo2/ (norms after, and over all heads)
olmo3/ (a window in all but the fourth layer)  qwen2_windows/ (a window in the second layer only)
granite/ (its four multipliers)  phi3/ (sliding window of 5) and the others of kinds.py
NAME.logits.safetensors as of make_convert_goldens.py
"""
import os
import shutil
import sys

import torch
from kinds import model_of
from make_convert_goldens import save, spread
from transformers import LlamaConfig, LlamaForCausalLM, MistralConfig, MistralForCausalLM
from transformers import GraniteConfig, GraniteForCausalLM
from transformers import Olmo2Config, Olmo2ForCausalLM, Olmo3Config, Olmo3ForCausalLM
from transformers import Qwen2Config, Qwen2ForCausalLM, Qwen3Config, Qwen3ForCausalLM, SmolLM3Config, SmolLM3ForCausalLM

SHAPE = dict(vocab_size=21, hidden_size=16, intermediate_size=20, num_hidden_layers=1, num_attention_heads=4,
             num_key_value_heads=2, max_position_embeddings=32, bos_token_id=1, eos_token_id=2)


def main(out, names):
    if not names:
        shutil.rmtree(out, ignore_errors=True)
    os.makedirs(out, exist_ok=True)
    torch.manual_seed(4)
    llama3 = {"rope_type": "llama3", "rope_theta": 50.0, "factor": 4.0, "low_freq_factor": 1.0, "high_freq_factor": 3.0,
              "original_max_position_embeddings": 16}
    linear = {"rope_type": "linear", "rope_theta": 100.0, "factor": 2.5}
    plain = {"rope_type": "default", "rope_theta": 300.0}
    models = {
        "qwen2": Qwen2ForCausalLM(Qwen2Config(**SHAPE, rope_parameters=plain, tie_word_embeddings=True)),
        "mistral": MistralForCausalLM(MistralConfig(**SHAPE, head_dim=8, rope_parameters=plain, sliding_window=5)),
        "llama3": LlamaForCausalLM(LlamaConfig(**SHAPE, head_dim=8, rope_parameters=llama3)),
        "linear": LlamaForCausalLM(LlamaConfig(**SHAPE, head_dim=8, rope_parameters=linear)),
        "qwen3": Qwen3ForCausalLM(Qwen3Config(**SHAPE, head_dim=8, rope_parameters=plain, tie_word_embeddings=True)),
        "smollm3": SmolLM3ForCausalLM(SmolLM3Config(**{**SHAPE, "num_hidden_layers": 2}, no_rope_layer_interval=2, pad_token_id=None)),
        "olmo2": Olmo2ForCausalLM(Olmo2Config(**SHAPE, pad_token_id=None)),
        "olmo3": Olmo3ForCausalLM(Olmo3Config(**{**SHAPE, "num_hidden_layers": 4}, sliding_window=3, pad_token_id=None)),
        "granite": GraniteForCausalLM(GraniteConfig(**SHAPE, rope_parameters=plain, tie_word_embeddings=True, embedding_multiplier=3.0,
                                                    residual_multiplier=0.6, attention_multiplier=0.3, logits_scaling=2.5)),
        "qwen2_windows": Qwen2ForCausalLM(Qwen2Config(**{**SHAPE, "num_hidden_layers": 2}, rope_parameters=plain,
                                                      use_sliding_window=True, sliding_window=3, max_window_layers=1)),
    }
    for kind in ("phi3", "phi4", "yarn", "dynamic", "starcoder2", "stablelm", "gpt_neox", "falcon", "falcon_7b"):
        window = {"sliding_window": 5} if kind == "phi3" else {}
        models[kind] = model_of(kind, {**SHAPE, "hidden_size": 32, **window})
    for seed, (name, model) in enumerate(models.items()):
        spread(model, 10 + seed)
        if not names or name in names:
            save(model, out, name)


main(sys.argv[1], sys.argv[2:])
