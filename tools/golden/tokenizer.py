#!/usr/bin/env python3
"""Goldens of tests/text, made with Hugging Face tokenizers (and sentencepiece for the SentencePiece model).

  pip install tokenizers sentencepiece
  tools/golden/tokenizer.py tests/text/data/corpus.jsonl tests/text/goldens

Committed files: tokenizers 0.23.3, sentencepiece 0.2.3.
  trained/{vocab.json,merges.txt,tokenizer.json}   BpeTrainer on the corpus, 700 tokens
  classes.txt       FIRST LAST CLASS: how the ByteLevel pre-tokenizer treats each code point (L letter, N number, S space)
  pretokens.json    [text, [bytes of each pretoken]]
  encodings.json    [text, ids] with trained/tokenizer.json
  decodings.json    [ids, text] with trained/tokenizer.json
  pieces.model, pieces.json   a SentencePiece model trained on the corpus, and [text, ids, decoded text]
  sentencepiece/NAME.model, NAME.json   the same with other options (SENTENCEPIECE)
"""
import io
import json
import os
import random
import sys

import tokenizers
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers

TEXTS = [
    "", " ", "  ", "   ", "\n", "\n\n", " \n", "\n ", "\t", "\t\t", " \t ", "\r\n", "\r\n\r\n", "\r", "a", " a", "  a", "   a", "a ", "a  ", "a   b",
    "\na", "\n\na", "\n a", "\n  a", "\ta", "\t\ta", " \ta", "\t a", "a\n", "a\n\n", "a \n", "a\n \n b", "\r\na", "a\r\n  b\r\n\r\n",
    "def f(x):\n    return x + 1\n", "if x:\n\ty()\n\n\n\nz", "hello world", " hello  world ", "don't", "DON'T", "we've they're I'm he'll she'd it's can't",
    "'s", "'S", " 's", "''s", "x's's", "'sam", "'re", "'r", "'v", "'ve", "'l", "'ll", "'lla", "'d'm't", "it\u2019s", "'", "''", "' s", "!'s", "'\u017f", "1's",
    "abc123", "123abc", "1a2b", " 123", "  123", "3.14", "1,000,000", "0x1F", "v2.0", "a1 b2", "17 000000000000000000",
    "!?", " !?", "...", " ... ", "a!b", "!a", "(a)", "\"quoted\"", "a_b", "__init__", "--x", "$5", "#1", "@me", "~/.x",
    "<|endoftext|>", "<|endoftext|><|endoftext|>", "a<|endoftext|>b", " <|endoftext|> ", "  <|endoftext|>  ", "<|endoftext|", "|endoftext|>", "<<|endoftext|>>", "<|endoftext<|endoftext|>", "\n<|endoftext|>\n",
    "é", "e\u0301", " e\u0301", "a\u0301b", "\u0301", "\u0301a", " \u0301", "naïve café", "Größe Maß", "ÀÉÎ", "ﬁ", "ſ", "ǅ", "ªº",
    "日本語", " 日本語", "日本語 テスト", "中文，标点。", "한국어 텍스트", "ㄱㄴ", "ไทย", "עברית", "العربية", "हिन्दी", "தமிழ்", "Ελληνικά", "Русский", "ქართული", "ᐃᓄᒃᑎᑐᑦ", "አማርኛ",
    "١٢٣", "१२", "a١", "1١", "½", "²", "x²", "10²", "½ ²", "Ⅳ", "ⅷ", "①", "㊿", "〇", "一二三", "௧௨", "𝟘𝟙", "𐄇", "༳", "½a", "a½",
    "\u00a0", "a\u00a0b", "a \u00a0b", "\u00a0\u00a0a", "\u0085", "a\u0085b", "\u1680a", "a\u180eb", "\u2003\u2003x", "\u2028", "a\u2029b", "\u202f1", "\u205f", "\u3000日本", " \u3000a", "\u3000 a", "\u200b", "a\u200bb", "\ufeff", "\ufeffa", "a\ufeff",
    "\u200d", "\u200c", "\x00", "a\x00b", "\x01\x02", "\x0b", "\x0c", "a\x0bb", "\x1c", "\x1d", "\x1e", "\x1f", "\x7f",
    "😀", "a😀", "😀😀", " 😀", "👨\u200d👩\u200d👧\u200d👦", "👍🏽", "🇩🇪", "☀️", "❤", "→", "x→y", "≈", "€5", "5€", "№", "°C", "…", "—", "“quoted”", "«x»",
    "\ue000", "\uf8ff", "\U000f0000", "\U0010fffd", "\U0010ffff", "\uffff", "\ufffd", "\u0378", "\u0558", "\U0001f9ff\U0002a6df", "\U0003134f", "\U00031350", "𝒜𝓑", "𐍈", "𠮷野家",
    "\u1c89", "\ua7cb", "\U000105c0", "\U00010d40", "\u0300\u0301\u0302", "a\u0300 b\u0301", "\u093f", "क\u093f",
    "a" * 15, "a" * 16, "a" * 17, "a" * 64, "a" * 65, "a" * 200, "ab" * 100, "the" * 40, " the" * 30, "=" * 63, "=" * 64, "=" * 65, "=" * 66, "-" * 300, "0" * 80, " " * 17, " " * 64, " " * 65, " " * 66 + "x", "\n" * 70, "日" * 21, "日" * 22, "日本" * 30, "é" * 33,
]


def write_json(path, value):
    with open(path, "w", encoding="ascii") as file:
        file.write("[\n" + ",\n".join(json.dumps(v) for v in value) + "\n]\n")


def train(corpus):
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.post_processor = processors.ByteLevel(trim_offsets=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(vocab_size=700, special_tokens=["<|endoftext|>"], show_progress=False,
                                  initial_alphabet=pre_tokenizers.ByteLevel.alphabet())
    tokenizer.train_from_iterator(corpus, trainer)
    return tokenizer


def class_runs():
    """Runs of code points that join a word of letters, a number, or are taken as space."""
    pretokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    joins = lambda before, c: len(pretokenizer.pre_tokenize_str(before + c)) == 1
    runs = []
    for code in range(0x110000):
        if 0xD800 <= code < 0xE000:
            continue
        c = chr(code)
        kind = "L" if joins("a", c) else "N" if joins("1", c) else "" if joins("!", c) else "S"
        if runs and runs[-1][1] == code - 1 and runs[-1][2] == kind:
            runs[-1][1] = code
        else:
            runs.append([code, code, kind])
    return [run for run in runs if run[2]]


def decodings(tokenizer):
    rng = random.Random(7)
    ids = [[rng.randrange(tokenizer.get_vocab_size()) for _ in range(rng.randrange(1, 12))] for _ in range(40)]
    byte = {b: tokenizer.token_to_id(t[0]) for b, t in enumerate(byte_tokens())}
    broken = [b"\xff", b"a\xe2\x82", b"\xe2\x82a", b"\xf0\x9f\x98", b"\xf0\x9f\x98\x80", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\xc0\xaf", b"\xe0\x80\xaf", b"\xf0\x80\x80",
              b"\x80\x80", b"\xe2(\xa1", b"\xf0\x90(\xbc", b"\xf0\x9f\xe2\x82\xac", b"\xc3", b"\xf1\x80\x80\x80\x80", b"\xf8\x88\x80\x80\x80"]
    ids += [[byte[b] for b in text] for text in broken]
    return [[x, tokenizer.decode(x, skip_special_tokens=False)] for x in ids]


def byte_tokens():
    """GPT-2's character for each byte."""
    same = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = iter(range(256, 512))
    return [chr(b) if b in same else chr(next(others)) for b in range(256)]


PLAIN = {"normalization_rule_name": "identity", "remove_extra_whitespaces": False}
SENTENCEPIECE = {
    "bytes": {**PLAIN, "vocab_size": 600, "byte_fallback": True},
    "digits": {**PLAIN, "add_dummy_prefix": False, "split_digits": True, "allow_whitespace_only_pieces": True},
    "suffix": {**PLAIN, "treat_whitespace_as_suffix": True},
    "user": {"normalization_rule_name": "identity", "user_defined_symbols": ["the", "<sep>", "ab", "  ", "\t", "\u2581is", "ing\u2581"], "control_symbols": ["<ctl>"]},
    "nmt_nfkc_cf": {"normalization_rule_name": "nmt_nfkc_cf"},
}


def sentencepiece_golden(corpus, stem, **options):
    import sentencepiece

    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(corpus), model_writer=model, **{"vocab_size": 300, "model_type": "bpe", "character_coverage": 0.98, "minloglevel": 2, **options})
    with open(stem + ".model", "wb") as file:
        file.write(model.getvalue())
    processor = sentencepiece.SentencePieceProcessor(model_proto=model.getvalue())
    texts = [t for t in TEXTS if len(t) < 20]
    write_json(stem + ".json", [[t, processor.encode(t), processor.decode(processor.encode(t))] for t in texts])


def sentencepiece_goldens(corpus, folder):
    sentencepiece_golden(corpus, os.path.join(folder, "pieces"), vocab_size=800, byte_fallback=True, normalization_rule_name="identity")
    os.makedirs(os.path.join(folder, "sentencepiece"), exist_ok=True)
    for name, options in SENTENCEPIECE.items():
        sentencepiece_golden(corpus, os.path.join(folder, "sentencepiece", name), **options)


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        corpus = [json.loads(line)["text"] for line in file]
    folder = sys.argv[2]
    trained = os.path.join(folder, "trained")
    os.makedirs(trained, exist_ok=True)
    tokenizer = train(corpus)
    tokenizer.model.save(trained)
    tokenizer.save(os.path.join(trained, "tokenizer.json"))
    with open(os.path.join(folder, "classes.txt"), "w", encoding="ascii") as file:
        file.write(f"# tools/golden/tokenizer.py, tokenizers {tokenizers.__version__}\n")
        file.writelines(f"{first:X} {last:X} {kind}\n" for first, last, kind in class_runs())
    pieces = lambda text: [len(p) for p, _ in tokenizer.pre_tokenizer.pre_tokenize_str(text)]  # a character is a byte there
    write_json(os.path.join(folder, "pretokens.json"), [[text, pieces(text)] for text in TEXTS])
    texts = TEXTS + corpus + [" ".join(TEXTS)]
    write_json(os.path.join(folder, "encodings.json"), [[text, tokenizer.encode(text).ids] for text in texts])
    write_json(os.path.join(folder, "decodings.json"), decodings(tokenizer))
    sentencepiece_goldens(corpus, folder)


if __name__ == "__main__":
    main()
