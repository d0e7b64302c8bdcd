"""Families whose tiny models the other tools here make by one rule: kind -> transformers' classes and settings."""
import transformers

PHI3 = (transformers.Phi3Config, transformers.Phi3ForCausalLM)


def rope(**more):
    return {"rope_parameters": {"rope_type": "default", "rope_theta": 300.0, **more}}


def longrope(short, long):
    return rope(rope_type="longrope", short_factor=short, long_factor=long)


KINDS = {
    # Rotated as far as it goes by default: LLaMA's function under other names.
    "phi3": (*PHI3, {**rope(), "pad_token_id": None}),
    # Heads of 8 channels, 6 of them rotated. Texts are shorter than the original context, and longer.
    "phi4": (*PHI3, {**longrope([1.0, 1.1, 1.3], [1.5, 2.0, 6.0]), "partial_rotary_factor": 0.75, "pad_token_id": None,
                     "original_max_position_embeddings": 28, "tie_word_embeddings": True}),
    "phi3-long": (*PHI3, {**longrope([1.0, 1.1, 1.2, 1.3], [1.5, 2.0, 3.0, 6.0]), "pad_token_id": None,
                          "original_max_position_embeddings": 6}),
    "yarn": (transformers.LlamaConfig, transformers.LlamaForCausalLM,
             rope(rope_type="yarn", factor=4.0, original_max_position_embeddings=8, beta_fast=1.0, beta_slow=0.1)),
    "dynamic": (transformers.LlamaConfig, transformers.LlamaForCausalLM, rope(rope_type="dynamic", factor=3.0)),
    "starcoder2": (transformers.Starcoder2Config, transformers.Starcoder2ForCausalLM, rope()),
    "stablelm": (transformers.StableLmConfig, transformers.StableLmForCausalLM, {"use_qkv_bias": True, **rope(partial_rotary_factor=0.5)}),
    "gpt_neox": (transformers.GPTNeoXConfig, transformers.GPTNeoXForCausalLM, rope(partial_rotary_factor=0.5)),
    # As Falcon 40B, and as Falcon 7B.
    "falcon": (transformers.FalconConfig, transformers.FalconForCausalLM, {"new_decoder_architecture": True, **rope()}),
    "falcon_7b": (transformers.FalconConfig, transformers.FalconForCausalLM, {"multi_query": True, "parallel_attn": True, **rope()}),
}
# What some families call members of `shape`; None: they have no such member.
NAMES = {
    "gpt_neox": {"num_key_value_heads": None},
    "falcon": {"num_key_value_heads": "num_kv_heads", "intermediate_size": "ffn_hidden_size"},
    "falcon_7b": {"num_key_value_heads": None, "intermediate_size": "ffn_hidden_size"},
}


def model_of(kind, shape, more={}):
    """A model with random weights. `shape`: members of its configuration, those of all families; `more`: some of its own."""
    config, model, members = KINDS[kind]
    named = {NAMES.get(kind, {}).get(key, key): value for key, value in shape.items()}
    named.pop(None, None)
    return model(config(**{**named, **members, **more}))
