"""Small tokenizers of each family, and what Hugging Face's tokenizers makes of text with them: the peer of byte_level_bpe_test.cpp.

    python3 hf_tokenizers.py DIR LINES SEED

writes DIR/FAMILY.json, and DIR/FAMILY.jsonl with LINES lines {"text", "ids", "with_special", "decoded", "whole"}; what is left out is
equal: with_special to ids, the other two to text. Seed 1 and 30 lines are the fixtures in tests/fixtures/tokenizers.
"""
import json
import random
import sys
from pathlib import Path

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

LLAMA3 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*"
          r"|\s*[\r\n]+|\s+(?!\S)|\s+")
QWEN2 = LLAMA3.replace(r"\p{N}{1,3}", r"\p{N}")
O200K = (r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
         r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
         r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+")
DIGITS = r"\p{Nd}+|[A-Za-z_]++(?=[^a-z]|)|[一-龥぀-ヿ]+"

# Ranges of code points, a script or a kind each.
SCRIPTS = {
    "ascii": [(0x20, 0x7E)], "latin": [(0xC0, 0x24F), (0x1E00, 0x1EFF)], "greek": [(0x370, 0x3FF), (0x1F00, 0x1FFF)],
    "cyrillic": [(0x400, 0x52F)], "armenian": [(0x531, 0x587)], "hebrew": [(0x591, 0x5F4)], "arabic": [(0x600, 0x6FF), (0xFB50, 0xFDFF)],
    "devanagari": [(0x900, 0x97F)], "bengali": [(0x980, 0x9FE)], "tamil": [(0xB82, 0xBFA)], "thai": [(0xE01, 0xE5B)],
    "tibetan": [(0xF00, 0xFDA)], "georgian": [(0x10A0, 0x10FF)], "hangul": [(0xAC00, 0xD7A3), (0x1100, 0x11FF)],
    "ethiopic": [(0x1200, 0x139F)], "khmer": [(0x1780, 0x17F9)], "kana": [(0x3041, 0x30FF)], "han": [(0x4E00, 0x9FFF)],
    "rare_han": [(0x20000, 0x2A6DF), (0xF900, 0xFAFF), (0x2F800, 0x2FA1D)], "marks": [(0x300, 0x36F), (0x1AB0, 0x1ACE), (0x20D0, 0x20F0)],
    "numbers": [(0x30, 0x39), (0xB2, 0xBE), (0x660, 0x669), (0x2150, 0x218B), (0x2460, 0x249B), (0x1D7CE, 0x1D7FF)],
    "spaces": [(0x9, 0xD), (0x20, 0x20), (0x85, 0x85), (0xA0, 0xA0), (0x1680, 0x1680), (0x2000, 0x200F), (0x2028, 0x202F), (0x3000, 0x3000)],
    "symbols": [(0x2010, 0x2027), (0x20A0, 0x20BF), (0x2190, 0x23FF), (0x2600, 0x27BF)], "emoji": [(0x1F300, 0x1FAFF), (0x1F1E6, 0x1F1FF)],
    "controls": [(0x0, 0x1F), (0x7F, 0x9F), (0xFE00, 0xFE0F), (0xFEFF, 0xFEFF), (0xE000, 0xE0FF)],
    "anything": [(0x0, 0xD7FF), (0xE000, 0x10FFFF)], "mathematics": [(0x1D400, 0x1D7CB)], "gothic": [(0x10330, 0x1034A)],
    "adlam": [(0x1E900, 0x1E959)], "cherokee": [(0x13A0, 0x13FD), (0xAB70, 0xABBF)],
}
WORDS = ["the", "The", "model's", "we'LL", "I'd", "they've", "X'S", "'s", "don't", "o'ſ", "12345", "3.14", "1,000,000", "foo_bar()", "#include",
         "<|eot|>", "<|begin|>", "<|eot|", "<|maſk|>", "<mask>", " <mask> ", "<É>", "<E\u0301>", "<think>", "über", "u\u0308ber", "naïve",
         "Straße", "日本語", "中文123", "한국어", "अनुभव", "العربية", "\r\n", "\n\n", "  ", "\t", "   x", "\n  \n", "...", "?!", "://", "🙂",
         "👩‍👩‍👧", "🇩🇪", "e\u0301\u0323", "\u1100\u1161\u11a8", "Å", "Ω", "ﬁ", "½", "٣", "ǅ", "'", "''"]


def line(rng):
    parts = []
    for _ in range(rng.randrange(1, 12)):
        if rng.random() < 0.5:
            parts.append(rng.choice(WORDS))
        else:
            ranges = SCRIPTS[rng.choice(list(SCRIPTS))]
            for _ in range(rng.choice([1, 2, 3, 5, 9])):
                parts.append(chr(rng.randint(*rng.choice(ranges))))
                if rng.random() < 0.1:
                    parts.append(chr(rng.randint(0x300, 0x36F)))
        if rng.random() < 0.6:
            parts.append(rng.choice([" ", " ", " ", "  ", "\n", "\t "]))
    return "".join(parts)


def split(pattern, behavior="isolated", invert=False):
    return pre_tokenizers.Split(Regex(pattern), behavior, invert)


def byte_level(prefix=False, regex=False):
    return pre_tokenizers.ByteLevel(add_prefix_space=prefix, use_regex=regex)


def special(content, **how):
    return AddedToken(content, special=True, normalized=False, **how)


# Pre-tokenizer, normalizer, added tokens, template before and after, ignore_merges.
FAMILIES = {
    "gpt2": (byte_level(regex=True), None, [AddedToken("<|eot|>", special=True, normalized=True)], None, False),
    "gpt2_prefix": (byte_level(prefix=True, regex=True), None, [special("<|eot|>"), AddedToken("<mask>", special=True, lstrip=True)], None,
                    False),
    "llama3": (pre_tokenizers.Sequence([split(LLAMA3), byte_level()]), None, [special("<|begin|>"), special("<|eot|>"),
               special("<mask>", rstrip=True)], "<|begin|> $A", True),
    "qwen2": (pre_tokenizers.Sequence([split(QWEN2), byte_level()]), normalizers.NFC(), [special("<|eot|>"), AddedToken(
        "<É>", normalized=True), AddedToken("<think>", normalized=False)], None, False),
    "o200k": (pre_tokenizers.Sequence([split(O200K, "removed", True), byte_level()]), normalizers.Sequence([normalizers.NFC()]),
              [special("<|eot|>"), special("<|begin|>")], "<|begin|> $A <|eot|>", False),
    "several": (pre_tokenizers.Sequence([pre_tokenizers.Split("://", "isolated"), split(DIGITS), pre_tokenizers.Digits(individual_digits=True),
                                         byte_level(prefix=True, regex=True)]), None, [special("<|eot|>")], None, False),
}


def trained(family, rng):
    pre_tokenizer, normalizer, added, template, ignore_merges = FAMILIES[family]
    tokenizer = Tokenizer(models.BPE(ignore_merges=ignore_merges))
    tokenizer.pre_tokenizer, tokenizer.decoder = pre_tokenizer, decoders.ByteLevel()
    if normalizer is not None:
        tokenizer.normalizer = normalizer
    trainer = trainers.BpeTrainer(vocab_size=420, show_progress=False, initial_alphabet=pre_tokenizers.ByteLevel.alphabet())
    tokenizer.train_from_iterator([line(rng) for _ in range(300)], trainer)
    if ignore_merges:  # a word that no merges make
        stored = json.loads(tokenizer.to_str())
        stored["model"]["vocab"]["Ġmodel"] = tokenizer.get_vocab_size()
        tokenizer = Tokenizer.from_str(json.dumps(stored))
    tokenizer.add_tokens(added)
    if template:
        names = [word for word in template.split() if word != "$A"]
        tokenizer.post_processor = processors.Sequence([processors.ByteLevel(), processors.TemplateProcessing(
            single=template, special_tokens=[(name, tokenizer.token_to_id(name)) for name in names])])
    return tokenizer


def main():
    folder, lines, seed = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    folder.mkdir(parents=True, exist_ok=True)
    for family in FAMILIES:
        rng = random.Random(f"{seed} {family}")
        tokenizer = trained(family, rng)
        (folder / f"{family}.json").write_text(tokenizer.to_str() + "\n", encoding="utf-8")
        with open(folder / f"{family}.jsonl", "w", encoding="utf-8") as out:
            for _ in range(lines):
                text = line(rng)
                ids = tokenizer.encode(text, add_special_tokens=False).ids
                row = {"text": text, "ids": ids}
                others = {"with_special": (tokenizer.encode(text).ids, ids), "decoded": (tokenizer.decode(ids), text),
                          "whole": (tokenizer.decode(ids, skip_special_tokens=False), text)}
                row |= {name: value for name, (value, equal) in others.items() if value != equal}
                out.write(json.dumps(row, separators=(",", ":")) + "\n")


main()
