#!/usr/bin/env python3
"""Writes tests/dialects/paddle/goldens/npy.jsonl: small .npy files, most of them damaged at random, and what numpy reads
in each (numpy.load; needs numpy):  tools/golden/make_npy.py"""
import io
import json
import os
import random
import warnings

import numpy as np

COUNT = 900
PIECES = [b"'shape': (2,), ", b"'shape': (3,), ", b"'descr': '<u2', ", b"'descr': '<i4', ", b"'fortran_order': True, ", b"\0", b"}", b"{", b")", b"(", b",",
          b" ", b"\n", b"\t", b"#", b"'", b"\"", b"0", b"1", b"-", b"L", b"x", b"True", b"None", b"\\x30", b"\xc3\xa9", b": ", b"+ 1", b"1_0", b"0x2", b"b'"]


def valid(rng):
    kind = rng.choice(["<i4", "<u2", "<i8", "|u1", "<i2", "<u8"])
    out = io.BytesIO()
    array = np.array([rng.randrange(0, 100) for _ in range(rng.randrange(0, 4))], dtype=kind)
    np.lib.format.write_array(out, array, version=rng.choice([(1, 0), (2, 0), (3, 0)]))
    return bytearray(out.getvalue())


def with_header(data, header):
    """The file with another header of a length that is right."""
    small = data[6] == 1
    begin = 10 if small else 12
    length = int.from_bytes(data[8:begin], "little")
    return bytearray(bytes(data[:8]) + len(header).to_bytes(begin - 8, "little") + header + bytes(data[begin + length:]))


def damaged(rng, data):
    begin = 10 if data[6] == 1 else 12
    end = begin + int.from_bytes(data[8:begin], "little")
    header = bytes(data[begin:end])
    used = len(header.rstrip())
    way = rng.randrange(8)
    at = rng.randrange(used + 1)
    if way == 0:  # a byte of the file
        data[rng.randrange(min(len(data), begin + used))] = rng.randrange(256)
    elif way == 1:  # a byte of the header
        data[begin + rng.randrange(used)] = rng.choice(b" ',:(){}[]01234<>|iufTrue\0\n#\"")
    elif way == 2:
        data = with_header(data, header[:at] + rng.choice(PIECES) + header[at:])
    elif way == 3:
        data = with_header(data, header[:at] + header[at + rng.randrange(1, 4):])
    elif way == 4:  # before a key or after the last
        places = [i for i in range(used) if header[i:i + 1] == b"'" and header[i - 1:i] in b"{ "] + [used - 1, used]
        at = rng.choice(places)
        data = with_header(data, header[:at] + rng.choice(PIECES[:5] + [b"'x': 1, ", b"junk", b"}"]) + header[at:])
    elif way == 5:
        data[6:8] = bytes([rng.randrange(5), rng.choice([0, 0, 1])])
    elif way == 6:
        del data[rng.randrange(len(data)):]
    else:
        data = with_header(data, header.rstrip() + rng.choice([b"", b" ", b"\n", b"\n\n", b" \n ", b"\0\n", b"; 1\n", b"# \n", b"\r\n", b"\x0c\n"]))
    return data


def reading(data):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            array = np.load(io.BytesIO(bytes(data)), allow_pickle=False)
        except Exception:  # whatever numpy says
            return None
    if not isinstance(array, np.ndarray) or array.ndim != 1 or array.dtype.kind not in "iu" or not array.dtype.isnative:
        return None
    return {"type": array.dtype.str, "values": [str(v) for v in array.tolist()]}


def main():
    rng = random.Random(1)
    folder = os.path.join(os.path.dirname(__file__), "../../tests/dialects/paddle/goldens")
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, "npy.jsonl"), "w") as file:
        for i in range(COUNT):
            data = valid(rng)
            for _ in range(0 if i % 20 == 0 else rng.randrange(1, 3)):
                data = damaged(rng, data) if len(data) > 24 and data[6] in (1, 2, 3) else data
            file.write(json.dumps({"file": bytes(data).hex(), "numpy": reading(data)}) + "\n")


main()
