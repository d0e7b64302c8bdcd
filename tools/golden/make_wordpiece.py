#!/usr/bin/env python3
"""Small tokenizer.json files with WordPiece models, and what Hugging Face tokenizers makes of texts with them.

  pip install tokenizers
  tools/golden/make_wordpiece.py tests/text/data/corpus.jsonl tests/text/goldens/wordpiece
  tools/golden/make_wordpiece.py --fuzz build/release/bin/megalith-tokenizer --models 500 --texts 2000 --seed 1

Committed files: tokenizers 0.23.3. Its training differs from run to run, so another run writes other models.
  NAME.json    a tokenizer.json (forms())
  texts.json   texts of words, parts of them, and odd characters
  ids.json     [file, [for each BLOCK texts the SHA-256 of a line for each, its ids in decimal, and another for the text decoded from them]]

--fuzz compares random models and stages with random texts instead: the ids of megalith-tokenizer must be those of tokenizers. It prints differences and counts, and exits 1
when there is one.
"""
import hashlib
import json
import os
import random
import sys

from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
from tokenizer import TEXTS, write_json  # noqa: E402
from tokenizer_fuzz import fuzz, parse_options  # noqa: E402

COUNT, BLOCK = 1200, 100
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
ODD = ["\u0301", "e\u0301", "\u0323\x00\u0301", "\u00e9", "\u1e69", "\ufb01", "\u00a0", "\u3000", "\u200b", "\u00ad", "\t", "\n", "\r\n", "\x00", "\x01", "\x0b", "\x0c", "\x1c", "\x7f", "\x85", "\ufffd", "\u0130",
       "\u03a3", "\u00df", "\u01c5", "\uac00", "\u1100\u1161", "\u30ac", "\u65e5\u672c", "\u4e00", "\uf900", "\U00020000", "\U0001f600", "_", "a_b", "9", "\u0663", "\u00bd", "\u00b2", "\u2160", "$", "+", "`", "^", "\u3001",
       "\u00bf", "\u2014", "\u0903", "\u093e", "\U0001d165", "\U000e0041", "\ue000", "\u0378", "[MASK]", "[UNK]", "##", "##a", "A", " ", "  ", "."]


def trained(corpus, normalizer, pre_tokenizer, prefix="##", **model):
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]", continuing_subword_prefix=prefix, **model))
    if normalizer is not None:
        tokenizer.normalizer = normalizer
    if pre_tokenizer is not None:
        tokenizer.pre_tokenizer = pre_tokenizer
    trainer = trainers.WordPieceTrainer(vocab_size=420, limit_alphabet=80, special_tokens=SPECIAL, continuing_subword_prefix=prefix, show_progress=False)
    tokenizer.train_from_iterator(corpus, trainer)
    form = json.loads(tokenizer.to_str())
    form["model"].update(max_input_chars_per_word=model.get("max_input_chars_per_word", 100), continuing_subword_prefix=prefix)
    return Tokenizer.from_str(json.dumps(form))


def pair(tokenizer, token):
    return token, tokenizer.token_to_id(token)


def forms(corpus):
    uncased = trained(corpus, normalizers.BertNormalizer(), pre_tokenizers.BertPreTokenizer())
    uncased.post_processor = processors.TemplateProcessing(single="[CLS] $A [SEP]", special_tokens=[pair(uncased, "[CLS]"), pair(uncased, "[SEP]")])
    uncased.decoder = decoders.WordPiece()
    yield "uncased", uncased
    cased = trained(corpus, normalizers.BertNormalizer(lowercase=False, clean_text=False), pre_tokenizers.BertPreTokenizer(), max_input_chars_per_word=9)
    cased.post_processor = processors.BertProcessing(pair(cased, "[SEP]"), pair(cased, "[CLS]"))
    cased.decoder = decoders.WordPiece(cleanup=False)
    yield "cased", cased
    steps = normalizers.Sequence([normalizers.NFD(), normalizers.Lowercase(), normalizers.StripAccents()])
    words = trained(corpus, steps, pre_tokenizers.Whitespace(), prefix="@@")
    words.decoder = decoders.WordPiece(prefix="@@")
    words.add_tokens([AddedToken("harbour", normalized=True, single_word=True), AddedToken("<x>", lstrip=True, rstrip=True)])
    yield "whitespace", words
    yield "stages", trained(corpus, normalizers.BertNormalizer(strip_accents=True, lowercase=False, handle_chinese_chars=False),
                            pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Punctuation(), pre_tokenizers.Digits(True)]))
    yield "runs", trained(corpus, None, pre_tokenizers.Sequence([pre_tokenizers.Digits(False), pre_tokenizers.Punctuation("contiguous")]))
    yield "whole", trained(corpus, normalizers.Lowercase(), None, prefix="", max_input_chars_per_word=30)


def random_form(rng, corpus):
    """A tokenizer with a vocabulary of parts of words, of which a few are missing."""
    prefix = rng.choice(["##", "##", "@", ""])
    words = [w for t in rng.sample(corpus, 4) for w in t.split()] + ODD
    vocab = {"[UNK]": 0}
    for _ in range(rng.randrange(30, 400)):
        word = rng.choice(words)
        at = rng.randrange(len(word))
        piece = word[at:at + rng.choice([1, 1, 2, 3, 5])]
        vocab.setdefault(rng.choice(["", prefix]) + rng.choice([piece, piece.lower()]), len(vocab))
    for c in "abcdefghijklmnopqrstuvwxyz":
        for p in ("", prefix):
            if rng.random() < 0.9:
                vocab.setdefault(p + c, len(vocab))
    tokenizer = Tokenizer(models.WordPiece(vocab, unk_token="[UNK]", max_input_chars_per_word=rng.choice([100, 100, 4, 12])))
    form = json.loads(tokenizer.to_str())
    form["model"]["continuing_subword_prefix"] = prefix
    tokenizer = Tokenizer.from_str(json.dumps(form))
    flag = lambda: rng.random() < 0.5
    if rng.random() < 0.85:
        tokenizer.normalizer = normalizers.BertNormalizer(clean_text=flag(), handle_chinese_chars=flag(), strip_accents=rng.choice([None, True, False]), lowercase=flag())
    stages = [pre_tokenizers.BertPreTokenizer(), pre_tokenizers.Whitespace(), pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Punctuation(), pre_tokenizers.Punctuation("contiguous"),
              pre_tokenizers.Digits(True), pre_tokenizers.Digits(False)]
    chosen = [stages[0]] if flag() else rng.sample(stages, rng.randrange(4))
    if chosen:
        tokenizer.pre_tokenizer = chosen[0] if len(chosen) == 1 else pre_tokenizers.Sequence(chosen)
    if flag():
        tokenizer.add_special_tokens(["[MASK]"])
    return tokenizer


def random_text(rng, words):
    text = ""
    for _ in range(rng.randrange(1, rng.choice([4, 15, 40]))):
        kind = rng.randrange(6)
        word = rng.choice(words)
        if kind < 2:
            text += word + " "
        elif kind == 2:
            text += rng.choice([word.upper(), word.title(), word[:rng.randrange(len(word) + 1)]])
        elif kind == 3:
            text += rng.choice(ODD)
        elif kind == 4:
            code = rng.choice([rng.randrange(0x80), rng.randrange(0x3000), rng.randrange(0x20000)])
            text += chr(code) if not 0xD800 <= code < 0xE000 else " "
        else:
            text += rng.choice([" ", ".", "a", "\u0301", "\u65e5", "1"]) * rng.randrange(1, 12)
    return text


def hashes(tokenizer, texts):
    lines = []
    for text in texts:
        ids = tokenizer.encode(text).ids
        lines.append(" ".join(map(str, ids)) + "\n" + tokenizer.decode(ids, skip_special_tokens=False) + "\n")
    return [hashlib.sha256("".join(lines[at:at + BLOCK]).encode()).hexdigest() for at in range(0, len(lines), BLOCK)]


def write_goldens(corpus, folder):
    rng = random.Random(3)
    words = [w for t in corpus for w in t.split()]
    texts = TEXTS + [t for t in corpus if len(t) < 300]
    while len(texts) < COUNT:
        texts.append(random_text(rng, words))
    rows = []
    for name, tokenizer in forms(corpus):
        with open(os.path.join(folder, name + ".json"), "w", encoding="ascii") as file:
            file.write(json.dumps(json.loads(tokenizer.to_str()), separators=(",", ":")) + "\n")
        rows.append([name + ".json", hashes(tokenizer, texts)])
    for name, value in (("texts", texts), ("ids", rows)):
        write_json(os.path.join(folder, name + ".json"), value)


def fuzz_cases(folder, corpus, given):
    rng = random.Random(given.seed)
    words = [w for t in corpus for w in t.split()]
    path = os.path.join(folder, "tokenizer.json")
    for _ in range(given.models):
        judge = random_form(rng, corpus)
        judge.save(path)
        texts = [random_text(rng, words) for _ in range(given.texts)]
        yield path, texts, [e.ids for e in judge.encode_batch(texts)]


def main():
    given = parse_options()
    corpus_file = given.paths[0] if given.paths else os.path.join(HERE, "..", "..", "tests", "text", "data", "corpus.jsonl")
    with open(corpus_file, encoding="utf-8") as file:
        corpus = [json.loads(line)["text"] for line in file]
    if given.fuzz:
        sys.exit(fuzz("wordpiece", given, lambda folder: fuzz_cases(folder, corpus, given)))
    os.makedirs(given.paths[1], exist_ok=True)
    write_goldens(corpus, given.paths[1])


if __name__ == "__main__":
    main()
