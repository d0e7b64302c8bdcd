#!/usr/bin/env python3
"""Writes tests/train/goldens/schedule.txt: pipeline orders from megatron-core's own schedule functions.
  tools/golden/schedule.py > tests/train/goldens/schedule.txt        (megatron-core 0.16.1, torch 2.x)
A line: rank ranks chunks microbatches group : steps, F or B, chunk, '.', microbatch.
get_schedule_table and get_pp_rank_microbatches are executed; the order around them (warm-up forwards, then one forward and one
backward in turn, then the rest of the backwards; the backward of virtual step k is in chunk chunks-1-chunk_of(k)) is that of
forward_backward_pipelining_with(out)_interleaving."""
import types
import megatron.core
from megatron.core.pipeline_parallel import schedules


def order(rank, ranks, chunks, microbatches, group):
    comm = types.SimpleNamespace(
        pp_group=types.SimpleNamespace(size=lambda: ranks, rank=lambda: rank),
        virtual_pipeline_model_parallel_size=chunks if chunks > 1 else None)
    total, _, warmup, _ = schedules.get_pp_rank_microbatches(microbatches, chunks, group, p2p_communicator=comm)
    table = schedules.get_schedule_table(microbatches, chunks, group)
    forward = [f"F{chunk}.{m}" for m, chunk in table]
    backward = [f"B{chunks - 1 - chunk}.{m}" for m, chunk in table]
    steps = forward[:warmup]
    for k in range(total - warmup):
        steps += [forward[warmup + k], backward[k]]
    return steps + backward[total - warmup:]


def main():
    print(f"# made by tools/golden/schedule.py with megatron-core {megatron.core.__version__}")
    for ranks, chunks, microbatches, group in [
            (1, 1, 1, 1), (1, 1, 3, 1), (2, 1, 1, 2), (2, 1, 4, 2), (3, 1, 5, 3), (4, 1, 4, 4), (4, 1, 9, 4), (5, 1, 2, 5),
            (2, 2, 2, 2), (2, 2, 4, 2), (2, 3, 6, 2), (2, 2, 5, 3), (3, 2, 6, 3), (3, 2, 7, 4), (3, 4, 3, 3), (4, 2, 8, 4),
            (4, 3, 12, 8), (4, 2, 9, 5), (6, 2, 12, 6)]:
        for rank in range(ranks):
            print(rank, ranks, chunks, microbatches, group, ":", *order(rank, ranks, chunks, microbatches, group))


main()
