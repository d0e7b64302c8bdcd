#!/usr/bin/env python3
"""Makes tests/convert/goldens: two small random models as transformers saves them, with logits.

    python tools/golden/make_convert_goldens.py tests/convert/goldens

Made with transformers 5.23.0, torch 2.15.0, tokenizers 0.23.3, safetensors 0.8.0.
gpt2/, llama/    save_pretrained() of the model; gpt2/ with the files of a byte-level BPE of 300 tokens
NAME.logits.safetensors    "ids" [2, 12] i64 and the model's "logits" [2, 12, v] f32
gpt2.shards.json           weight_map of save_pretrained(max_shard_size="20KB")
"""
import json
import os
import shutil
import sys
import tempfile

import torch
from safetensors.torch import save_file
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers
from transformers import GPT2Config, GPT2LMHeadModel, LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

TEXT = """def add(a, b):
    return a + b

class Point:
    def __init__(self, x, y):
        self.x = x
        self.y = y

for i in range(10):
    print(i, add(i, 1))
"""


def make_tokenizer(folder):
    tok = Tokenizer(models.BPE())
    tok.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tok.decoder = decoders.ByteLevel()
    tok.post_processor = processors.ByteLevel(trim_offsets=False)
    tok.train_from_iterator([TEXT] * 3, trainers.BpeTrainer(
        vocab_size=300, special_tokens=["<|endoftext|>"], initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet())))
    tok.save(os.path.join(folder, "tokenizer.json"), pretty=False)
    tok.model.save(folder)
    fast = PreTrainedTokenizerFast(tokenizer_object=tok, bos_token="<|endoftext|>", eos_token="<|endoftext|>")
    with tempfile.TemporaryDirectory() as scratch:
        fast.save_pretrained(scratch)
        shutil.copy(os.path.join(scratch, "tokenizer_config.json"), folder)


def spread(model, seed):
    """Random values everywhere, so that no bias is zero, no norm one, and a wrong row shows."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for p in model.parameters():
            p.add_(0.2 * torch.randn(p.shape, generator=generator))


def save(model, out, name):
    folder = os.path.join(out, name)
    model.eval().save_pretrained(folder)
    ids = torch.randint(0, model.config.vocab_size, (2, 12), generator=torch.Generator().manual_seed(7))
    with torch.no_grad():
        logits = model(ids).logits
    save_file({"ids": ids, "logits": logits}, os.path.join(out, name + ".logits.safetensors"))
    return folder


def main(out):
    shutil.rmtree(out, ignore_errors=True)
    os.makedirs(out)
    torch.manual_seed(1)
    gpt2 = GPT2LMHeadModel(GPT2Config(vocab_size=300, n_positions=20, n_embd=20, n_layer=2, n_head=5, n_inner=36,
                                      activation_function="gelu_new", layer_norm_epsilon=1e-6, bos_token_id=0, eos_token_id=0,
                                      attn_pdrop=0.0, resid_pdrop=0.0, embd_pdrop=0.0))
    spread(gpt2, 2)
    make_tokenizer(save(gpt2, out, "gpt2"))
    llama = LlamaForCausalLM(LlamaConfig(vocab_size=77, hidden_size=24, intermediate_size=28, num_hidden_layers=3,
                                         num_attention_heads=6, num_key_value_heads=2, head_dim=8, max_position_embeddings=16,
                                         rms_norm_eps=1e-5, rope_parameters={"rope_type": "default", "rope_theta": 500.0},
                                         tie_word_embeddings=False, bos_token_id=1, eos_token_id=2))
    spread(llama, 3)
    save(llama, out, "llama")
    with tempfile.TemporaryDirectory() as scratch:
        gpt2.save_pretrained(scratch, max_shard_size="20KB")
        index = json.load(open(os.path.join(scratch, "model.safetensors.index.json")))
    json.dump(index, open(os.path.join(out, "gpt2.shards.json"), "w"), indent=1)


if __name__ == "__main__":
    main(sys.argv[1])
