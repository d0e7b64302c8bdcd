#!/usr/bin/env python3
"""Make tests/parity/goldens/generate-*: tiny models of some families, trained for a moment on the corpus of the
tokenizer's tests, and the text that transformers' pipeline("text-generation") continues prompts with.

  python tools/golden/make_generate_goldens.py tests [KIND …]      (torch 2.15.0, transformers 5.23.0; qwen3, olmo2
                                                                          and those of kinds.py: 5.24.0)

With KIND …, makes only these.

generate-NAME/ holds config.json and model.safetensors; the tokenizer is tests/text/goldens/trained/tokenizer.json.
"""
import json
import os
import sys
import tempfile

os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")
import torch
import transformers
from kinds import KINDS, model_of

PROMPTS = ["The ", "def f(x):\n", "naïve 日本", "a"]


def make_model(kind, vocab, eos):
    common = dict(vocab_size=vocab, bos_token_id=eos, eos_token_id=eos)
    if kind == "gpt2":
        return transformers.GPT2LMHeadModel(transformers.GPT2Config(
            n_positions=64, n_embd=16, n_layer=2, n_head=2, n_inner=32, resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0,
            **common))
    if kind in KINDS:
        shape = dict(hidden_size=16, intermediate_size=24, num_hidden_layers=2, num_attention_heads=2, num_key_value_heads=1,
                     max_position_embeddings=64, **common)
        # Where texts cross the original context, transformers changes the rotation in their midst.
        return model_of(kind, shape, {"original_max_position_embeddings": 64} if kind == "phi4" else {})
    if kind == "qwen3":
        return transformers.Qwen3ForCausalLM(transformers.Qwen3Config(
            hidden_size=12, intermediate_size=24, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2, head_dim=6,
            max_position_embeddings=64, tie_word_embeddings=True, **common))
    if kind == "olmo2":
        return transformers.Olmo2ForCausalLM(transformers.Olmo2Config(
            hidden_size=16, intermediate_size=24, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
            max_position_embeddings=64, pad_token_id=None, **common))
    return transformers.LlamaForCausalLM(transformers.LlamaConfig(
        hidden_size=12, intermediate_size=24, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2, head_dim=4,
        max_position_embeddings=64, rms_norm_eps=1e-5, tie_word_embeddings=False, **common))


def train(model, ids):
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    generator = torch.Generator().manual_seed(3)
    for _ in range(300):
        starts = torch.randint(0, len(ids) - 33, (16,), generator=generator)
        rows = torch.stack([ids[s:s + 33] for s in starts])
        logits = model(input_ids=rows[:, :-1], use_cache=False).logits
        loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), rows[:, 1:].flatten())
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    return loss.item()


def main():
    root = sys.argv[1]
    tokenizer = transformers.PreTrainedTokenizerFast(
        tokenizer_file=os.path.join(root, "text/goldens/trained/tokenizer.json"), eos_token="<|endoftext|>",
        clean_up_tokenization_spaces=False)
    ids = []
    with open(os.path.join(root, "text/data/corpus.jsonl"), encoding="utf-8") as corpus:
        for line in corpus:
            ids += tokenizer(json.loads(line)["text"])["input_ids"] + [tokenizer.eos_token_id]
    for kind in sys.argv[2:] or ("gpt2", "llama", "qwen3", "phi4", "starcoder2", "gpt_neox", "falcon_7b", "olmo2"):
        torch.manual_seed(11)
        model = make_model(kind, len(tokenizer), tokenizer.eos_token_id)
        loss = train(model, torch.tensor(ids))
        folder = os.path.join(root, "parity/goldens/generate-" + kind)
        model.eval().save_pretrained(folder)
        os.remove(os.path.join(folder, "generation_config.json"))
        pipe = transformers.pipeline("text-generation", model=model, tokenizer=tokenizer)
        texts = [pipe(p, max_new_tokens=24, do_sample=False)[0]["generated_text"] for p in PROMPTS]
        with open(folder + ".json", "w", encoding="utf-8") as out:
            json.dump(dict(generator="tools/golden/make_generate_goldens.py", torch=torch.__version__,
                           transformers=transformers.__version__, prompts=PROMPTS, max_new_tokens=24, texts=texts),
                      out, indent=1, ensure_ascii=False)
            out.write("\n")
        print(kind, len(ids), loss, texts)


main()
