#!/usr/bin/env python3
"""Preprocesses a corpus by tasks of datatrove, each of which does the shard of its rank:
    python examples/datatrove_step.py N CORPUS OUT TOKENIZER
datatrove notes which tasks are done, and a second run does the others. SlurmPipelineExecutor takes the same step.
"""
import subprocess
import sys

from datatrove.executor import LocalPipelineExecutor
from datatrove.pipeline.base import PipelineStep


class MegalithPreprocess(PipelineStep):
    name = "Megalith preprocess"
    type = "tokenizer"

    def __init__(self, corpus, out, tokenizer):
        super().__init__()
        self.corpus, self.out, self.tokenizer = corpus, out, tokenizer

    def run(self, data=None, rank=0, world_size=1):
        with self.track_time():
            subprocess.run(["megalith-preprocess", "--input", self.corpus, "--output-prefix", self.out,
                            "--tokenizer-model", self.tokenizer, "--append-eod", "--workers", "1",
                            "--shard", f"{rank}/{world_size}"], check=True)
        return data


def main():
    shards, corpus, out, tokenizer = sys.argv[1:]
    step = MegalithPreprocess(corpus, out, tokenizer)
    LocalPipelineExecutor([step], tasks=int(shards), workers=2, logging_dir=f"{out}.datatrove").run()
    subprocess.run(["megalith-merge", "--shards", out, "--output-prefix", out], check=True)


if __name__ == "__main__":
    main()
