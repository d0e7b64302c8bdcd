#!/usr/bin/env python3
"""Reads a folder of event files with tensorboard's own EventAccumulator and prints what it finds, one JSON object a line.
  tests/train/read_tensorboard.py FOLDER        (tensorboard 2.x)"""
import json
import sys

from tensorboard.backend.event_processing.event_accumulator import STORE_EVERYTHING_SIZE_GUIDANCE, EventAccumulator


def main():
    events = EventAccumulator(sys.argv[1], size_guidance=STORE_EVERYTHING_SIZE_GUIDANCE)
    events.Reload()
    for tag in events.Tags()["scalars"]:
        for e in events.Scalars(tag):
            print(json.dumps({"tag": tag, "step": e.step, "value": e.value}))
    for tag in events.Tags()["tensors"]:
        for e in events.Tensors(tag):
            print(json.dumps({"tag": tag, "step": e.step, "text": e.tensor_proto.string_val[0].decode()}))


main()
