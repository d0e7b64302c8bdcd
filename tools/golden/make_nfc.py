#!/usr/bin/env python3
"""Writes tests/text/goldens/nfc.sha256: SHA-256 of what NFC of Hugging Face tokenizers makes of texts with every code point.

  pip install tokenizers
  tools/golden/make_nfc.py tests/text/goldens/nfc.sha256

Committed file: tokenizers 0.23.3.
"""
import hashlib
import sys

from tokenizers import normalizers

nfc = normalizers.NFC().normalize_str
digest = hashlib.sha256()
for code in range(0x110000):
    if not 0xD800 <= code < 0xE000:
        c = chr(code)
        for text in (c, f"a{c}\u0301", f"a\u0323{c}\u0301{c}", f"{c}\u1161\u11a8{c}"):
            digest.update((nfc(text) + "\n").encode())
with open(sys.argv[1], "w", encoding="ascii") as file:
    file.write(digest.hexdigest() + "\n")
