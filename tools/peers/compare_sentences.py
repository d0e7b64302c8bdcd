#!/usr/bin/env python3
"""Holds `megalith-preprocess --split-sentences` against NLTK's Punkt, used as Megatron-LM's tools/preprocess_data.py does.

    BUILD=build/release python tools/peers/compare_sentences.py [--strings N] [--seed S] [--every FIRST LAST] [--documents N] [--train BYTES] [CORPUS.jsonl ...]

Texts: N random strings of words, periods, quotes, brackets and blanks of every kind; with --every each code point of a range (hexadecimal) around periods; the first
documents of each corpus. A Punkt model is trained on the head of each corpus (without one, on the random strings), and both programs read it from the
same punkt_tab folder. The tokenizer has one token a byte, so a sequence is a sentence. With and without --keep-newlines. Prints the first
differences and their number, and exits 1 when there is one. (nltk 3.10 compiles its patterns with the regex module; earlier ones know no curly quotes.)
"""
import argparse, itertools, json, os, random, subprocess, sys, tempfile, time

import numpy
from nltk.tokenize import punkt

PREPROCESS = os.path.abspath(os.path.join(os.environ.get("BUILD", "build/release"), "bin", "megalith-preprocess"))
PART = 1000000

SPACES = [" "] * 30 + list("\n\n\n\t\r\x0b\x0c\x1c\x1f\x85\xa0\u1680\u2003\u2028\u202f\u3000") + ["\n\n", "  ", " \n ", ". ", "\u200b"]
ENDS = list("..........???!!!") + ["...", "..", ". . .", ". . . .", ". .", "?!", "!!!", "--", "---", "-", ",", ";", ":", ".,", ".)", '."', ".'", ".\u201d", "!\u2019", "?\xbb", ".]", "\u3002", "\u2026", ".--", ").", "'.", ".(", ".\u201c"]
OPEN = list("\"'([{`\u2018\u201c\xab*#@&") + ["--", "''", '""']
WORDS = ["a", "A", "I", "i", "the", "The", "THE", "he", "He", "Mr", "mr", "Dr", "e.g", "i.e", "U.S", "U.S.A", "Inc", "co-op", "x-dr", "St", "No", "no", "p.m", "vs", "1", "12", "3.14", "1,000", "-5", "-.5", "5.", "1.2.3",
         ",5", "1-2", "\u0663", "\u0663.\u0664", "\u09e7", "\u00b2", "\u00e9t\u00e9", "\u00c9t\u00e9", "\u0130stanbul", "\u03a3", "\u03a3\u0399\u03a3\u03a5\u03a6\u039f\u03a3", "\u0391\u03a3'", "a\u03a3.", "\u01c5", "\u02b0", "\u00aa", "_", "_x", "e\u0301", "\u0301", "\u0416", "\u0436\u0443\u043a", "\u0416\u0443\u043a", "\u4e2d\u6587",
         "\u65e5\u672c", "\u05d0", "\u0627", "\U00010400", "\U00010428", "\U0001d400", "\U0001f600", "\u24b6", "\u2160", "\u2170", "##number##", "number", "e.g.", "Z", "z", "x.y.z", "www.x.org", "a/b", "\u00df", "\ufb01"]


def random_text(rng):
    out = []
    for _ in range(rng.choice((1, 2, 3, 5, 8, 13, 30))):
        if rng.random() < 0.2:
            out.append(rng.choice(OPEN))
        word = rng.choice(WORDS)
        if rng.random() < 0.1:
            code = rng.choice((rng.randrange(0x21, 0x250), rng.randrange(0x250, 0x3000), rng.randrange(0x21, 0x110000)))
            word = word[:1] + (chr(code) if not 0xD800 <= code < 0xE000 else "") + word[1:]
        out.append(word if rng.random() < 0.9 else word.upper())
        for _ in range(rng.choice((0, 0, 0, 1, 1, 1, 1, 2, 3))):
            out.append(rng.choice(ENDS))
        if rng.random() < 0.85:
            out.append(rng.choice(SPACES) * rng.choice((1, 1, 1, 2)))
    return "".join(out)


def every_code_point(first, last):
    for code in range(first, last + 1):
        if not 0xD800 <= code < 0xE000:
            c = chr(code)
            yield f"He {c}. The {c}{c}. he 1{c}.{c} He{c} dr.{c}A. {c}A. b. {c}a b.{c}{c} {c}B. {c}b. A{c}. \u03a3{c}. a{c}\u03a3. A{c}\u03a3{c}a. A b.{c}"


def documents(paths, count):
    for path in paths:
        with open(path, encoding="utf-8") as lines:
            for line in itertools.islice(lines, count):
                try:
                    text = json.loads(line)["text"]
                    text.encode()
                except (ValueError, KeyError, TypeError, AttributeError):
                    continue
                yield text


def train(texts, limit):
    trainer = punkt.PunktTrainer()
    trainer.INCLUDE_ALL_COLLOCS = True
    size = 0
    for text in texts:
        trainer.train(text, finalize=False)
        size += len(text)
        if size > limit:
            break
    trainer.finalize_training()
    return trainer.get_params()


def save(params, folder):
    os.makedirs(folder)
    tables = {"collocations.tab": ["\t".join(p) for p in params.collocations], "sent_starters.txt": params.sent_starters, "abbrev_types.txt": params.abbrev_types,
              "ortho_context.tab": [f"{word}\t{flags}" for word, flags in params.ortho_context.items()]}
    for name, rows in tables.items():
        with open(os.path.join(folder, name), "w", encoding="utf-8", newline="") as out:
            out.write("\n".join(sorted(rows)))
    print(", ".join(f"{name} {len(rows)}" for name, rows in tables.items()))


class KeepBlanks(punkt.PunktLanguageVars):
    """Megatron's CustomLanguageVars: the word before the period and the blanks after it are part of the match."""
    _period_context_fmt = r"\S*%(SentEndChars)s\s*(?=(?P<after_tok>%(NonWord)s|(?P<next_tok>\S+)))"


def tokenizer(folder):
    same = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = iter(range(256, 512))
    vocab = {chr(b if b in same else next(others)): b for b in range(256)}
    with open(os.path.join(folder, "vocab.json"), "w") as out:
        json.dump({**vocab, "<|endoftext|>": 256}, out)
    with open(os.path.join(folder, "merges.txt"), "w") as out:
        out.write("#version: 0.2\n")


def ours(folder, texts, keep):
    with open(os.path.join(folder, "texts.jsonl"), "w") as out:
        out.writelines(json.dumps({"text": text}) + "\n" for text in texts)
    command = [PREPROCESS, "--input", "texts.jsonl", "--output-prefix", "out", "--vocab-file", "vocab.json", "--merge-file", "merges.txt", "--split-sentences", "--lang", "trained"]
    start = time.time()
    subprocess.run(command + ["--keep-newlines"] * keep, cwd=folder, env={**os.environ, "NLTK_DATA": folder}, check=True, stderr=subprocess.PIPE)
    seconds = time.time() - start
    index = open(os.path.join(folder, "out_text_sentence.idx"), "rb").read()
    sequences, entries = numpy.frombuffer(index, "<u8", 2, 18)
    lengths = numpy.frombuffer(index, "<i4", sequences, 34)
    bounds = numpy.frombuffer(index, "<i8", entries, 34 + 12 * int(sequences))
    data = numpy.fromfile(os.path.join(folder, "out_text_sentence.bin"), "<u2").astype("u1").tobytes()
    ends = numpy.cumsum(lengths)
    sentences = [data[end - n:end].decode() for end, n in zip(ends.tolist(), lengths.tolist())]
    return [sentences[a:b] for a, b in zip(bounds, bounds[1:])], seconds


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpora", nargs="*")
    parser.add_argument("--strings", type=int, default=100000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--every", nargs=2, type=lambda code: int(code, 16), metavar=("FIRST", "LAST"))
    parser.add_argument("--documents", type=int, default=2000)
    parser.add_argument("--train", type=int, default=3000000)
    options = parser.parse_args()
    rng = random.Random(options.seed)
    # "<|endoftext|>" is one token and would come back as another byte.
    texts = [text for text in documents(options.corpora, options.documents) if "<|endoftext|>" not in text]
    texts += [random_text(rng) for _ in range(options.strings)]
    texts += every_code_point(*options.every) if options.every else []
    wrong = 0
    with tempfile.TemporaryDirectory() as folder:
        tokenizer(folder)
        params = train(texts, options.train) if not options.corpora else train(itertools.chain(*(list(documents([c], options.documents))[::2] for c in options.corpora)), options.train)
        save(params, os.path.join(folder, "tokenizers", "punkt_tab", "trained"))
        for keep in (False, True):
            splitter = punkt.PunktSentenceTokenizer(params, lang_vars=KeepBlanks() if keep else None)
            found, seconds = ours(folder, texts, keep)
            start, total, given_up = time.time(), 0, 0
            for text, sentences in itertools.zip_longest(texts, found):
                try:
                    wanted = [s for i in range(0, len(text), PART) for s in splitter.tokenize(text[i:i + PART])]
                except TimeoutError:  # its patterns need quadratic time for a very long word, and stop after 5 s
                    given_up += 1
                    continue
                total += len(wanted)
                if wanted != sentences:
                    wrong += 1
                    if wrong <= 5:
                        at = next((i for i, (a, b) in enumerate(itertools.zip_longest(wanted, sentences)) if a != b), 0)
                        print("keep" if keep else "drop", repr(text[:300]), "\n  wanted", repr(wanted[at:at + 3])[:400], "\n  found ", repr(sentences[at:at + 3])[:400])
            print(f"{'with' if keep else 'without'} --keep-newlines: {len(texts)} texts, {given_up} of them given up by NLTK, {total} sentences, {seconds:.1f} s here, {time.time() - start:.1f} s in NLTK", flush=True)
    print(wrong, "differences")
    sys.exit(wrong > 0)


main()
