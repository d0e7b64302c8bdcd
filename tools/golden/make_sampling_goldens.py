#!/usr/bin/env python3
"""Make tests/generate/goldens/sampling.json: what transformers' logits processors leave of made-up logits.

  python tools/golden/make_sampling_goldens.py tests      (torch 2.15.0, transformers 5.23.0)

Each case holds options, the tokens before and the probabilities of the tokens that may be drawn, by id. Order as in
generate(): repetition penalty, no repeated n-grams, temperature, top-k, top-p, min-p, typical-p.
"""
import json
import os
import sys

import torch
import transformers
from transformers import (LogitsProcessorList, MinPLogitsWarper, NoRepeatNGramLogitsProcessor, RepetitionPenaltyLogitsProcessor,
                          TemperatureLogitsWarper, TopKLogitsWarper, TopPLogitsWarper, TypicalLogitsWarper)

OPTIONS = [dict(temperature=1.0), dict(temperature=0.7), dict(temperature=1.0, top_k=5), dict(temperature=1.3, top_k=1),
           dict(temperature=1.0, top_p=0.9), dict(temperature=0.5, top_p=0.3), dict(temperature=1.0, top_k=10, top_p=0.5),
           dict(temperature=1.0, repetition_penalty=1.3), dict(temperature=0.8, repetition_penalty=0.7, top_k=8, top_p=0.95),
           dict(temperature=2.0, top_p=0.0001),
           dict(temperature=1.0, min_p=0.05), dict(temperature=1.5, top_k=12, min_p=0.1), dict(temperature=1.0, min_p=1.0),
           dict(temperature=1.0, typical_p=0.9), dict(temperature=2.0, typical_p=0.2),
           dict(temperature=1.0, top_p=0.95, min_p=0.01, typical_p=0.6),
           dict(temperature=1.0, no_repeat_ngram_size=1), dict(temperature=1.0, no_repeat_ngram_size=2, top_k=6),
           dict(temperature=1.0, no_repeat_ngram_size=5), dict(temperature=1.0, no_repeat_ngram_size=9)]


def main():
    torch.manual_seed(5)
    logits = [round(x, 4) for x in (torch.randn(40) * 3).tolist()]
    before = [3, 17, 3, 39, 0]
    repeated = [16, 4, 37, 16, 5, 0, 16]
    cases = []
    for options in OPTIONS:
        steps = LogitsProcessorList()
        if "repetition_penalty" in options:
            steps.append(RepetitionPenaltyLogitsProcessor(options["repetition_penalty"]))
        steps.append(TemperatureLogitsWarper(options["temperature"]))
        if "top_k" in options:
            steps.append(TopKLogitsWarper(options["top_k"]))
        if "top_p" in options:
            steps.append(TopPLogitsWarper(options["top_p"]))
        if "min_p" in options:
            steps.append(MinPLogitsWarper(options["min_p"]))
        if "typical_p" in options:
            steps.append(TypicalLogitsWarper(options["typical_p"]))
        ngram = options.get("no_repeat_ngram_size")
        if ngram:
            steps.insert(0, NoRepeatNGramLogitsProcessor(ngram))
        scores = steps(torch.tensor([repeated if ngram else before]), torch.tensor([logits], dtype=torch.float32))
        kept = torch.softmax(scores[0].double(), 0)
        cases.append({**options, "kept": {str(i): p for i, p in enumerate(kept.tolist()) if p > 0}})
    out = {"versions": {"torch": torch.__version__, "transformers": transformers.__version__}, "logits": logits,
           "before": before, "repeated": repeated, "cases": cases}
    with open(os.path.join(sys.argv[1], "generate/goldens/sampling.json"), "w") as file:
        json.dump(out, file, indent=1)
        file.write("\n")


if __name__ == "__main__":
    main()
