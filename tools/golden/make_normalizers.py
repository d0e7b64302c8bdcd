#!/usr/bin/env python3
"""Writes tests/text/goldens/normalizers.json: SHA-256 of what each normalizer of Hugging Face tokenizers makes of texts with every code point that may be assigned.

  pip install tokenizers sentencepiece protobuf
  tools/golden/make_normalizers.py tests/text/goldens/sentencepiece/nmt_nfkc_cf.model tests/text/goldens/normalizers.json

Committed file: tokenizers 0.23.3. "Precompiled" has the charsmap of the model.
"""
import hashlib
import json
import sys

from sentencepiece import sentencepiece_model_pb2
from tokenizers import Regex, normalizers


def digest(normalize):
    out = hashlib.sha256()
    for code in (*range(0xD800), *range(0xE000, 0x32400), *range(0xE0000, 0xE1000)):  # no others are assigned
        c = chr(code)
        for text in (c, f"a{c}\u0301", f"a\u0323{c}\u0301{c}", f"{c}\u1161\u11a8{c}", f" {c}\u200d\u00a9", f"\u0600{c}  {c}e\u0301"):
            out.update((normalize(text) + "\n").encode())
    return out.hexdigest()


def main():
    model_file, golden = sys.argv[1:]
    model = sentencepiece_model_pb2.ModelProto()
    with open(model_file, "rb") as file:
        model.ParseFromString(file.read())
    steps = {
        "NFC": normalizers.NFC(), "NFD": normalizers.NFD(), "NFKC": normalizers.NFKC(), "NFKD": normalizers.NFKD(), "StripAccents": normalizers.StripAccents(),
        "Lowercase": normalizers.Lowercase(), "Nmt": normalizers.Nmt(), "Strip": normalizers.Strip(), "StripRight": normalizers.Strip(left=False),
        "JoinBlanks": normalizers.Replace(Regex(" {2,}"), "_"), "Bert": normalizers.BertNormalizer(), "BertCased": normalizers.BertNormalizer(lowercase=False),
        "BertAccents": normalizers.BertNormalizer(clean_text=False, handle_chinese_chars=False, lowercase=False, strip_accents=True), "Precompiled": normalizers.Precompiled(model.normalizer_spec.precompiled_charsmap),
        "ReplaceCompiled": normalizers.Replace(Regex(r"\p{N}+|[\p{Lu}&&\p{Greek}]"), "<n>"), "ReplaceOniguruma": normalizers.Replace(Regex(r"(?<=a)\p{M}|(?=e)|\s$"), "~"),
    }
    with open(golden, "w", encoding="ascii") as file:
        json.dump({name: digest(step.normalize_str) for name, step in steps.items()}, file, indent=1)
        file.write("\n")


if __name__ == "__main__":
    main()
