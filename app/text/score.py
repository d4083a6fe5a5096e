"""Scores translations: reads a file of JSON lines {"translation", "reference"}; prints {"bleu", "chrf", "signatures"} as sacrebleu has them.

Exit code 0; 3 where sacrebleu is not installed; 2 where the file cannot be read.
"""

import json
import os
import pathlib
import sys

SYSTEM_PYTHON = "/usr/bin/python3"  # where Debian's packages are, whatever python3 comes first on the PATH
NOT_INSTALLED = 3


def read_pairs(path):
    lines = [json.loads(line) for line in path.read_text(encoding="utf-8").split("\n") if line]
    return [line["translation"] for line in lines], [line["reference"] for line in lines]


def scores_of(translations, references):
    from sacrebleu.metrics import BLEU, CHRF

    bleu, chrf = BLEU(), CHRF()
    found = {"bleu": bleu.corpus_score(translations, [references]).score, "chrf": chrf.corpus_score(translations, [references]).score}
    return found | {"signatures": {"bleu": str(bleu.get_signature()), "chrf": str(chrf.get_signature())}}


def main(arguments):
    if len(arguments) != 1:
        print("usage: score.py PAIRS.jsonl", file=sys.stderr)
        return 2
    try:
        pairs = read_pairs(pathlib.Path(arguments[0]))
    except (OSError, ValueError, KeyError, TypeError) as error:
        print(f"score.py: {arguments[0]} is no file of translations and references ({error!r}).", file=sys.stderr)
        return 2
    try:
        found = scores_of(*pairs)
    except ImportError:
        if os.path.exists(SYSTEM_PYTHON) and os.path.realpath(sys.executable) != os.path.realpath(SYSTEM_PYTHON):
            os.execv(SYSTEM_PYTHON, [SYSTEM_PYTHON, __file__, *arguments])
        return NOT_INSTALLED
    print(json.dumps(found))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
