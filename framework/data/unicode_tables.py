"""Writes unicode_tables.cpp: python3 unicode_tables.py >unicode_tables.cpp, with unicodedata2 16.0.0 for the categories.

The patterns of Hugging Face's tokenizers see the classes of Unicode 16, and their normalizers order and compose as Unicode 9 does: what
Python's own unicodedata (14.0) has of it, less what came in between.
"""
import sys
import unicodedata

import unicodedata2

if (unicodedata2.unidata_version, unicodedata.unidata_version) != ("16.0.0", "14.0.0"):
    sys.exit("this takes unicodedata2 16.0.0 and Python 3.11, whose unicodedata is 14.0")

WIDTH = 138
# Marks, and a letter of two parts, that Unicode 10 to 14 added.
ADDED_MARKS = [
    (0x7FD, 0x7FD), (0x898, 0x89F), (0x8CA, 0x8D3), (0x9FE, 0x9FE), (0xC3C, 0xC3C), (0xD3B, 0xD3C), (0xEBA, 0xEBA),
    (0x1715, 0x1715), (0x1ABF, 0x1ACE), (0x1DF6, 0x1DFA), (0xA82C, 0xA82C), (0x10D24, 0x10D27), (0x10EAB, 0x10EAC),
    (0x10F46, 0x10F50), (0x10F82, 0x10F85), (0x11070, 0x11070), (0x1133B, 0x1133B), (0x1145E, 0x1145E),
    (0x11839, 0x1183A), (0x1193D, 0x1193E), (0x11943, 0x11943), (0x119E0, 0x119E0), (0x11A34, 0x11A34),
    (0x11A47, 0x11A47), (0x11A99, 0x11A99), (0x11D42, 0x11D42), (0x11D44, 0x11D45), (0x11D97, 0x11D97),
    (0x16FF0, 0x16FF1), (0x1E130, 0x1E136), (0x1E2AE, 0x1E2AE), (0x1E2EC, 0x1E2EF),
]
ADDED_LETTERS = {0x11938}
CODES = range(0x110000)


def lines(items):
    line = "   "
    for item in items:
        if len(line) + 1 + len(item) > WIDTH:
            print(line)
            line = "   "
        line += " " + item
    print(line)


def runs(value_of):
    """Where a value begins that differs from that of the code point before."""
    last = None
    for code in CODES:
        value = value_of(code)
        if value != last:
            yield code, value
        last = value


def combining_class(code):
    added = any(first <= code <= last for first, last in ADDED_MARKS)
    return 0 if added else unicodedata.combining(chr(code))


def decompositions():
    for code in CODES:
        if code in ADDED_LETTERS:
            continue
        parts = unicodedata.decomposition(chr(code)).split()
        if not parts or parts[0].startswith("<"):
            continue
        first, second = (parts + ["0"])[:2]
        composes = len(parts) == 2 and unicodedata.normalize("NFC", chr(code)) == chr(code)
        yield f"{{0x{code:X}, 0x{int(first, 16):X}, 0x{int(second, 16):X}, {int(composes)}}},"


print("// Made by unicode_tables.py: general categories of Unicode 16.0.0, canonical composition of 9.0.0. Not to be edited.")
print('#include "framework/data/unicode_tables.h"\n')
print("// clang-format off")
print("// NOLINTBEGIN(modernize-use-bool-literals)")
print("namespace tilewave {\nnamespace {\n")
print("using enum GeneralCategory;\n")
print("constexpr CategoryRun kCategoryRuns[] = {")
lines(f"{{0x{code:X}, {value}}}," for code, value in runs(lambda code: unicodedata2.category(chr(code))))
print("};\n\nconstexpr ClassRun kCombiningRuns[] = {")
lines(f"{{0x{code:X}, {value}}}," for code, value in runs(combining_class))
print("};\n\nconstexpr Decomposition kDecompositions[] = {")
lines(decompositions())
print("};\n\n}  // namespace\n")
print("std::span<const CategoryRun> category_runs() { return kCategoryRuns; }")
print("std::span<const ClassRun> combining_runs() { return kCombiningRuns; }")
print("std::span<const Decomposition> decompositions() { return kDecompositions; }\n")
print("}  // namespace tilewave")
print("// clang-format on")
print("// NOLINTEND(modernize-use-bool-literals)")
