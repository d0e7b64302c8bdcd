#!/usr/bin/env python3
"""Makes tests/model/goldens/rope.json: how far transformers turns each pair of a head's channels per position.

    python tools/golden/make_rope_goldens.py tests/model/goldens/rope.json      (transformers 5.24.0, torch 2.15.0)

For each case: the config.json, the length of a text, the frequencies and the factor of rotated heads.
"""
import json
import os
import sys

os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")
import transformers
from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS

SHAPE = dict(vocab_size=32, hidden_size=64, intermediate_size=32, num_hidden_layers=1, num_attention_heads=4, num_key_value_heads=2,
             max_position_embeddings=256)
YARN = dict(rope_type="yarn", rope_theta=10000.0, factor=8.0, original_max_position_embeddings=64)
DYNAMIC = dict(rope_type="dynamic", rope_theta=10000.0, factor=2.0)
LISTS = dict(rope_type="longrope", rope_theta=10000.0, short_factor=[1 + i / 16 for i in range(8)],
             long_factor=[1.5 ** i for i in range(8)], original_max_position_embeddings=64)
PART = dict(LISTS, short_factor=LISTS["short_factor"][:6], long_factor=LISTS["long_factor"][:6], partial_rotary_factor=0.75)
CASES = {  # name: (class, rope_parameters, length)
    "yarn": ("Llama", YARN, 256),
    "yarn, small base": ("Llama", dict(YARN, rope_theta=50.0), 256),
    "yarn, not truncated": ("Llama", dict(YARN, truncate=False), 256),
    "yarn, other turns": ("Llama", dict(YARN, beta_fast=4.0, beta_slow=2.0), 256),
    "yarn, one turn for both": ("Llama", dict(YARN, beta_fast=2.0, beta_slow=2.0, truncate=False), 256),
    "yarn, its factor of heads": ("Llama", dict(YARN, attention_factor=1.75), 256),
    "yarn, two scales": ("Llama", dict(YARN, mscale=1.0, mscale_all_dim=0.5), 256),
    "yarn, shrinking": ("Llama", dict(YARN, factor=0.5), 256),
    "dynamic, within": ("Llama", DYNAMIC, 200),
    "dynamic, at the end": ("Llama", DYNAMIC, 256),
    "dynamic, beyond": ("Llama", DYNAMIC, 300),
    "dynamic, far beyond": ("Llama", DYNAMIC, 4096),
    "longrope, short": ("Phi3", LISTS, 64),
    "longrope, long": ("Phi3", LISTS, 65),
    "longrope, a part of each head": ("Phi3", PART, 64),
    "longrope, a part, long": ("Phi3", PART, 65),
    "longrope, its factor of heads": ("Phi3", dict(LISTS, attention_factor=1.25), 64),
    "longrope of LLaMA, with a factor": ("Llama", dict(LISTS, factor=16.0), 65),
    "longrope, nothing to lengthen": ("Llama", dict(LISTS, factor=1.0), 65),
}


def main(path):
    cases = []
    for name, (family, rope, length) in CASES.items():
        more = {"original_max_position_embeddings": 64, "pad_token_id": None} if family == "Phi3" else {}
        config = getattr(transformers, family + "Config")(**SHAPE, **more, rope_parameters=dict(rope))
        frequencies, factor = ROPE_INIT_FUNCTIONS[rope["rope_type"]](config, "cpu", seq_len=length)
        cases.append(dict(name=name, config=config.to_diff_dict(), length=length, frequencies=frequencies.tolist(), magnitude=factor))
    with open(path, "w") as out:
        lines = ",\n".join(json.dumps(case) for case in cases)
        out.write(f'{{"generator": "tools/golden/make_rope_goldens.py", "transformers": "{transformers.__version__}", "cases": [\n{lines}\n]}}\n')


main(sys.argv[1])
