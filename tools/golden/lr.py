#!/usr/bin/env python3
"""Writes tests/train/goldens/lr.txt: learning rates from megatron-core's OptimizerParamScheduler.
  tools/golden/lr.py > tests/train/goldens/lr.txt        (megatron-core 0.16.1)
A line: style max min warmup decay_end samples : rate (all in samples; rate as C99 hex float and decimal).
The style of WSD is WSD:STYLE:LENGTH of its annealing phase."""
import types
import megatron.core
from megatron.core.optimizer_param_scheduler import OptimizerParamScheduler


def main():
    print(f"# made by tools/golden/lr.py with megatron-core {megatron.core.__version__}")
    cases = [("constant", 5e-4, 0.0, 0, 1600), ("constant", 5e-4, 1e-5, 320, 1600), ("linear", 1e-3, 1e-5, 160, 1600),
             ("linear", 1.5e-4, 0.0, 0, 7), ("cosine", 5e-4, 0.0, 2000 * 192, 150000 * 192), ("cosine", 6e-4, 6e-5, 12.5, 300),
             ("cosine", 1e-3, 1e-4, 0, 1)]
    for anneal in ("exponential", "linear", "cosine", "minus_sqrt"):
        cases += [(f"WSD:{anneal}:300", 6e-4, 6e-5, 160, 1600), (f"WSD:{anneal}:7", 1e-3, 0.0, 0, 1600),
                  (f"WSD:{anneal}:1440", 3e-4, 3e-6, 160, 1600)]
    for named, high, low, warmup, end in cases:
        style, anneal, length = (named.split(":") + [None, 0])[:3]
        group = {"lr": 0.0, "weight_decay": 0.0, "default_config": True}
        scheduler = OptimizerParamScheduler(
            types.SimpleNamespace(param_groups=[group]), init_lr=0.0, max_lr=high, min_lr=low, lr_warmup_steps=warmup,
            lr_decay_steps=end, lr_decay_style=style, start_wd=0.1, end_wd=0.1, wd_incr_steps=end, wd_incr_style="constant",
            use_checkpoint_opt_param_scheduler=False, wsd_decay_steps=int(length), lr_wsd_decay_style=anneal)
        half = int(warmup)
        for samples in sorted({0, 1, half // 2, half, half + 1, (half + end) // 3, (half + end) // 2, end - 1, end, end + 1, 2 * end}
                              | ({end - int(length) + k for k in (0, 1, 2, 5)} if anneal else set())):
            scheduler.num_steps = 0
            scheduler.step(samples)
            print(named, repr(high), repr(low), warmup, end, samples, ":", group["lr"].hex(), repr(group["lr"]))


main()
