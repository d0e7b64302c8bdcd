#!/usr/bin/env python3
"""Makes tests/finetune/goldens/scores.json: texts with a wanted one each, and what sacrebleu and rouge-score say of them.

    python tools/golden/make_score_goldens.py tests/finetune/goldens

"pairs" are [text, wanted] (a thousand, made of words, numbers, punctuation, entities, other scripts and blanks of many kinds);
"rouge_l" has rougeL's F-measure of each; "words" the words of sacrebleu's tokenizer 13a of the first texts; "bleu" the
corpus_bleu() of the first 1, 2, 10, 100 and of all pairs, and "mean_rouge_l" and "exact_match" of all.
Versions are in the file.
"""
import importlib.metadata
import json
import random
import sys

from rouge_score import rouge_scorer
from sacrebleu.metrics import BLEU
from sacrebleu.tokenizers.tokenizer_13a import Tokenizer13a

WORDS = """the a of and to harbour books captain ship wrote read found 12 3.14 1,000 2026-11-22 don't well-known e.g. U.S. state-of-the-art
(yes) "quoted" 'single' A/B x=y {a} [b] <c> a&b &amp; &quot;so&quot; &lt;b&gt; <skipped> naïve ÉCOLE İstanbul Straße 10K ΣΑΣ ﬁne 中文 字。 日本語、 русский
1.5, .5 5. ,x x, ... ,, 3- -3 a- -b 10-20 $5 50% #1 @home ~ ` ^ | \\ ; : ! ? ¿ — – … 1. 2,""".split()
BLANKS = [" "] * 12 + ["  ", "\t", "\n", "-\n", "\u00a0", "\u3000", "\u2009", "\r\n", "\x1c", "\u200b", ""]


def text(numbers, most):
    return "".join(numbers.choice(WORDS) + numbers.choice(BLANKS) for _ in range(numbers.randint(0, most)))


def changed(numbers, wanted):
    """Words dropped, doubled and swapped, blanks at the ends."""
    if numbers.random() < 0.1:
        return numbers.choice(["", " ", "\n"]) + wanted + numbers.choice(["", " ", "\n\n", "\u00a0"])
    words = wanted.split(" ")
    out = []
    for word in words:
        kind = numbers.random()
        if kind < 0.1:
            continue
        out.append(numbers.choice(WORDS) if kind < 0.2 else word.upper() if kind < 0.25 else word)
        if kind > 0.95:
            out.append(word)
    return " ".join(out)


def main(folder):
    numbers = random.Random(22)
    pairs = []
    for i in range(1000):
        wanted = text(numbers, 3 if i % 3 == 0 else 25)
        pairs.append([changed(numbers, wanted) if i % 7 else text(numbers, 10), wanted])
    pairs[0], pairs[1] = ["the harbour's books", "the harbour's other books"], ["", "nothing"]
    texts, wanted = zip(*pairs)
    scorer = rouge_scorer.RougeScorer(["rougeL"])
    rouge = [scorer.score(w, t)["rougeL"].fmeasure for t, w in pairs]
    bleu = {n: BLEU().corpus_score(list(texts[:n]), [list(wanted[:n])]).score for n in (1, 2, 10, 100, 1000)}
    cut = Tokenizer13a()
    result = dict(made_with={name: importlib.metadata.version(name) for name in ("sacrebleu", "rouge_score")}, bleu=bleu,
                  mean_rouge_l=100 * sum(rouge) / len(rouge), exact_match=100 * sum(t.strip() == w.strip() for t, w in pairs) / len(pairs),
                  words=[cut(t.rstrip()).split() for t in texts[:200]], rouge_l=rouge, pairs=pairs)
    with open(folder + "/scores.json", "w") as file:
        json.dump(result, file, ensure_ascii=False, separators=(",", ":"))
        file.write("\n")


main(sys.argv[1])
