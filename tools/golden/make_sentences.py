#!/usr/bin/env python3
"""Goldens of tests/text/sentences/sentence_splitter_test.cpp: a small Punkt model, and texts with the sentences that NLTK cuts with it.

  pip install nltk
  tools/golden/make_sentences.py tests/text/goldens/punkt

Committed files: nltk 3.10.4, regex 2026.11.15, Python 3.11.
  tokenizers/punkt_tab/english/   the model, trained on the text below, in the form that nltk.download("punkt_tab") gives
  sentences.json                  [text, its sentences, its sentences with Megatron's --keep-newlines]
  characters.sha256               of a line for each code point: what Punkt asks of it, and str.lower() of it alone and around a capital sigma
"""
import hashlib
import json
import os
import random
import sys

import regex
from nltk.tokenize import punkt

NAMES = ["Adams", "Berger", "Curie", "Dupont", "Evans", "Fischer", "Garcia", "Hansen", "Ito", "Jones"]
PLACES = ["harbour", "bridge", "mill", "tower", "garden", "station", "school", "library"]


def training_text(rng):
    kinds = [
        lambda n, p: f"Dr. {n} walked to the {p} with Prof. {rng.choice(NAMES)} and Mr. {rng.choice(NAMES)}.",
        lambda n, p: f"The {p} was built approx. {rng.randrange(20, 900)} years ago, e.g. of stone, wood, etc. and sand.",
        lambda n, p: f"However the {p} is closed. However it will open on the {rng.randrange(1, 28)}. of May.",
        lambda n, p: f"J. S. {n} wrote about the {p} in vol. {rng.randrange(1, 9)} of the book.",
        lambda n, p: f"Yesterday the {p} cost 3.5 p.m. a head. It is said that {n} saw it.",
        lambda n, p: f"he said: the {p} is at no. {rng.randrange(1, 99)}. Then {n} left. Then it rained.",
        lambda n, p: f"In {rng.randrange(1800, 2000)}. In the {p} of St. {n} there is the bell. A bell rings.",
        lambda n, p: f"We saw the co. of {n}. There were ships. there is no {p}.",
        lambda n, p: f"Der Wei\u00dfe Fluss z.B. ist lang. \u0395\u03bb\u03bb\u03ac\u03c2 \u03c0.\u03c7. \u03b5\u03af\u03bd\u03b1\u03b9 \u03b5\u03b4\u03ce. \u041f\u0440\u0438\u0432\u0435\u0442 \u0442.\u0434. \u0438 \u0442\u0430\u043c. \u041e\u043d \u0443\u0448\u0451\u043b.",
    ]
    return "\n".join(rng.choice(kinds)(rng.choice(NAMES), rng.choice(PLACES)) for _ in range(900))


TEXTS = [
    "", " ", "\n\n", ".", "...", "?!", "a", "a.", " a. ", "One. Two.", "One.Two. Three", "One! Two? Three... Four. . . Five", "  One.  \n\n Two. \t ", "Dr. Adams met Prof. Ito. They spoke. e.g. this. E.g. That.",
    "J. S. Bach. J. Evans. A. However, B. it is. C. bell", "At 3. of May. At 5. However. At 7.5 p.m. However 8", "He said (hello.) Then left. \"Quoted.\" 'Single.' [Bracket.] {Brace.} End", "\u201cCurly.\u201d Then \u2018single.\u2019 and \xabguillemets.\xbb End",
    "Very bad acting!!! I promise. Really?! Yes.", "Ends with quotes.\"\"\")) \" Next.--dash. (\"Nested.\")-- on", "vol. 3. The mill. vol. The. st. bell St. Curie", "one.\ntwo.\r\nThree.\x0bfour.\x0cFive.\x85Six.\xa0Seven.\u2003Eight.\u3000Nine",
    "one.\x1cTwo.\x1dThree. \x1f", "A sentence. \x1c\x1d", "\u4e2d\u6587\u3002\u65e5\u672c.\u8a9e? \u4e2d!\u6587", "\u0391\u03a3. \u0391\u03a3\u0391. \u03a3. \u03b1. \u0395\u03bb\u03bb\u03ac\u03c2", "\u0130stanbul. \u0131. \u0130. co-\u0130. Next", "\u0663. \u0663\u0664. 3\u0664. \u00b2. However. 1,000. However. -.5. However",
    "e\u0301. E\u0301. \u0301. However. _. However. \u01c5. However. \u00aa. However", "etc. etc., etc.; etc.) etc.\" However", "a.b.c. However. ..a. However ..... However", "co-op. co. However. x-dr. Adams. x-Dr. However. -. However -- However --. However", ". . . . . However. . .However . . ! However", "no sentence end here", "x.) \"y. \u00bbz.", "U.S.A. However the U.S. is", "a.\n\nb.\n \nc", "\nA. B.\n", "The end.\n\n\n", "He left. (She stayed.)  [They too.]\nAll.", "?\u201d \u201c! .\u201d", "http://x.org/a.b?c=d. Then. www.y.net!x", "@x. #y. *z. `q. &r. ;s. :t. ,u. -v. However",
]
ENDS = [".", ".", ".", "...", ". . .", "?", "!", "!!", "--", "-", ",", ";", ":", ".)", '."', ".'", ".\u201d", "?\xbb", ".]", "", ""]
SPACES = [" "] * 9 + ["\n", "\t", "  ", "\n\n", "\xa0", "\u3000", "\x1c", "", "\r\n"]
WORDS = ["Dr", "Prof", "mr", "approx", "e.g", "etc", "However", "however", "the", "The", "he", "He", "It", "J", "S", "a", "A", "vol", "7", "3.5", "-.5", "1,000", "mill", "Bell", "bell", "st", "St", "p.m", "co-op", "x-dr", "There", "there", "Then", "In", "Ito", "\u0391\u03a3", "\u03c0.\u03c7", "\u041e\u043d", "\u0442.\u0434", "z.B",
         "\u0663", "\u4e2d", "\u0130", "_", "e\u0301", "(", '"', "\u201c", "[", "'"]


def random_text(rng):
    return "".join(rng.choice(WORDS) + rng.choice(ENDS) + rng.choice(SPACES) for _ in range(rng.choice((3, 5, 8, 13))))


class KeepBlanks(punkt.PunktLanguageVars):
    """Megatron's CustomLanguageVars, written shorter."""
    _period_context_fmt = r"\S*%(SentEndChars)s\s*(?=(?P<after_tok>%(NonWord)s|(?P<next_tok>\S+)))"


def characters():
    for c in (chr(code) for code in range(0x110000) if not 0xD800 <= code < 0xE000):
        flags = "".join("01"[bool(flag)] for flag in (regex.match(r"\d", c), regex.match(r"[^\W\d]", c), c.isupper(), c.islower()))
        yield f"{flags} {c.lower()} {('A' + c + chr(0x3A3)).lower()} {(c + chr(0x3A3) + c).lower()} {('A' + chr(0x3A3) + c + 'A').lower()}\n"


def main():
    folder = sys.argv[1]
    model = os.path.join(folder, "tokenizers", "punkt_tab", "english")
    rng = random.Random(11)
    trainer = punkt.PunktTrainer()
    trainer.INCLUDE_ALL_COLLOCS = True
    trainer.COLLOCATION = 4
    trainer.train(training_text(rng))
    params = trainer.get_params()
    assert params.collocations and params.sent_starters and len(params.abbrev_types) > 5
    os.makedirs(model, exist_ok=True)
    tables = {"collocations.tab": ["\t".join(pair) for pair in params.collocations], "sent_starters.txt": params.sent_starters, "abbrev_types.txt": params.abbrev_types,
              "ortho_context.tab": [f"{word}\t{flags}" for word, flags in params.ortho_context.items()]}
    for name, rows in tables.items():
        with open(os.path.join(model, name), "w", encoding="utf-8", newline="") as out:
            out.write("\n".join(sorted(rows)))  # in any order, without a last line end, as NLTK writes them
        print(name, len(rows))
    splitters = [punkt.PunktSentenceTokenizer(params), punkt.PunktSentenceTokenizer(params, lang_vars=KeepBlanks())]
    texts = TEXTS + [random_text(rng) for _ in range(350)]
    with open(os.path.join(folder, "sentences.json"), "w", encoding="ascii") as out:
        out.write("[\n" + ",\n".join(json.dumps([text, *(s.tokenize(text) for s in splitters)]) for text in texts) + "\n]\n")
    with open(os.path.join(folder, "characters.sha256"), "w") as out:
        out.write(hashlib.sha256("".join(characters()).encode()).hexdigest() + "\n")


main()
