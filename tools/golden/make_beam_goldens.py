#!/usr/bin/env python3
"""Make tests/generate/goldens/beams.json: the texts that transformers' beam search finds.

  python tools/golden/make_beam_goldens.py tests      (torch 2.15.0, transformers 5.24.0)

Each case names a model of tests/parity/goldens, a prompt, the options of generate() and the ids that end a text, and
holds the new tokens of all beams, without an end token, the best first, and their scores.
"""
import json
import os
import sys

os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")
import torch
import transformers

MODELS = {"generate-gpt2": transformers.GPT2LMHeadModel, "generate-llama": transformers.LlamaForCausalLM}
PROMPTS = [[3, 1, 4, 1, 5], [9, 2, 6]]
OPTIONS = [dict(num_beams=2), dict(num_beams=3, length_penalty=0.5), dict(num_beams=4, length_penalty=2.0),
           dict(num_beams=8), dict(num_beams=4, early_stopping=True), dict(num_beams=3, length_penalty=-1.0),
           dict(num_beams=4, repetition_penalty=1.5), dict(num_beams=4, no_repeat_ngram_size=2),
           dict(num_beams=5, early_stopping=True, length_penalty=0.0)]
NEW = 12


def ends_of(model, prompt):
    """No id, and ids that the likeliest texts hold: one, and two of them."""
    greedy = model.generate(torch.tensor([prompt]), max_new_tokens=NEW, do_sample=False, pad_token_id=0)[0, len(prompt):].tolist()
    beams = model.generate(torch.tensor([prompt]), max_new_tokens=NEW, num_beams=4, do_sample=False, pad_token_id=0)
    other = [i for i in beams[0, len(prompt):].tolist() if i != greedy[4]]
    return [[], [greedy[4]], sorted({greedy[4], other[5]})]


def case(name, model, prompt, options, ends):
    out = model.generate(torch.tensor([prompt]), attention_mask=torch.ones(1, len(prompt), dtype=torch.long),
                         max_new_tokens=NEW, do_sample=False, pad_token_id=0, eos_token_id=ends or None,
                         num_return_sequences=options["num_beams"], return_dict_in_generate=True, output_scores=True, **options)
    texts = []
    for row in out.sequences[:, len(prompt):].tolist():
        end = next((i for i, token in enumerate(row) if token in ends), len(row))
        texts.append(row[:end])
    return dict(model=name, prompt=prompt, ends=ends, **options, texts=texts, scores=out.sequences_scores.tolist())


def main():
    cases = []
    for name, cls in MODELS.items():
        model = cls.from_pretrained(os.path.join(sys.argv[1], "parity/goldens", name), attn_implementation="eager",
                                    dtype=torch.float32).eval()
        model.generation_config.eos_token_id = None
        with torch.no_grad():
            for prompt in PROMPTS:
                for ends in ends_of(model, prompt):
                    cases += [case(name, model, prompt, options, ends) for options in OPTIONS]
    out = dict(versions=dict(torch=torch.__version__, transformers=transformers.__version__), max_new_tokens=NEW, cases=cases)
    with open(os.path.join(sys.argv[1], "generate/goldens/beams.json"), "w", encoding="utf-8") as file:
        file.write(json.dumps(out).replace('{"model": ', '\n{"model": ').replace(", \n", ",\n") + "\n")


if __name__ == "__main__":
    main()
