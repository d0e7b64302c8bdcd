#!/usr/bin/env python3
"""Makes the corpora of the fuzz targets safetensors, gguf and sentencepiece_table, and tests/checkpoint/goldens/small.gguf.

    python tools/golden/make_weight_corpora.py tests

Made with gguf 0.19.0, numpy, safetensors 0.8.0.
"""
import os
import struct
import sys

import gguf
import numpy
from safetensors.numpy import save_file

tests = sys.argv[1]
corpus = os.path.join(tests, "fuzz", "corpus")
for folder in ("safetensors", "gguf", "sentencepiece_table"):
    os.makedirs(os.path.join(corpus, folder), exist_ok=True)
os.makedirs(os.path.join(tests, "checkpoint", "goldens"), exist_ok=True)

save_file({"a": numpy.arange(6, dtype=numpy.float32).reshape(2, 3), "b.c": numpy.ones(4, numpy.float16)},
          os.path.join(corpus, "safetensors", "two.safetensors"), {"format": "pt"})
save_file({"empty": numpy.zeros((0, 3), numpy.float32), "é\"": numpy.zeros(1, numpy.int64)}, os.path.join(corpus, "safetensors", "odd.safetensors"))

values = numpy.linspace(-2, 3, 3 * 64, dtype=numpy.float32).reshape(3, 64)
for path in (os.path.join(corpus, "gguf", "small.gguf"), os.path.join(tests, "checkpoint", "goldens", "small.gguf")):
    writer = gguf.GGUFWriter(path, "gpt2")
    writer.add_block_count(2)
    writer.add_layer_norm_eps(1e-5)
    writer.add_add_bos_token(True)
    writer.add_token_list(["a", "bc", "é"])
    writer.add_token_scores([-1.0, 0.5, 2.0])
    writer.add_token_types([1, 1, 3])
    for name, kind in (("plain", gguf.GGMLQuantizationType.F32), ("half", gguf.GGMLQuantizationType.F16),
                       ("brain", gguf.GGMLQuantizationType.BF16), ("eight", gguf.GGMLQuantizationType.Q8_0)):
        writer.add_tensor(name, gguf.quantize(values, kind), raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()

model = b""
for text, score, kind in (("<unk>", 0.0, 2), ("\u2581a", -1.5, 1), ("<0x0A>", 0.0, 6)):
    raw = text.encode()
    fields = b"\x0a" + bytes([len(raw)]) + raw + b"\x15" + struct.pack("<f", score) + b"\x18" + bytes([kind])
    model += b"\x0a" + bytes([len(fields)]) + fields
open(os.path.join(corpus, "sentencepiece_table", "three.model"), "wb").write(model)
