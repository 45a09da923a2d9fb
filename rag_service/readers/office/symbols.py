"""Characters of fonts that draw something else than the letters: Symbol (Greek, mathematics) and Wingdings."""

from __future__ import annotations

_SYMBOL = {
    0x20: " !∀#∃%&∋()∗+,−./0123456789:;<=>?≅ΑΒΧΔΕΦΓΗΙϑΚΛΜΝΟΠΘΡΣΤΥςΩΞΨΖ[∴]⊥_‾αβχδεφγηιϕκλμνοπθρστυϖωξψζ{|}∼",
    0xA1: "ϒ′≤⁄∞ƒ♣♦♥♠↔←↑→↓°±″≥×∝∂•÷≠≡≈…⏐⎯↵ℵℑℜ℘⊗⊕∅∩∪⊃⊇⊄⊂⊆∈∉∠∇®©™∏√⋅¬∧∨⇔⇐⇑⇒⇓◊〈®©™∑",
    0xF1: "〉∫",
}
_WINGDINGS = {
    0x4A: "☺☻☹", 0x6C: "●", 0x6E: "■□", 0x71: "❑❒", 0x75: "◆", 0x9F: "•", 0xA7: "▪◻", 0xDF: "←→↑↓",
    0xF0: "⇨", 0xFB: "✗✓☒☑",
}  # fmt: skip
_FONTS = {
    font: {chr(start + at): sign for start, signs in table.items() for at, sign in enumerate(signs)}
    for font, table in (("symbol", _SYMBOL), ("wingdings", _WINGDINGS))
}


def symbol(font: str, code: str) -> str:
    """The character that a font shows for a code in hexadecimal digits, such as "F0B0"; empty if it is not known."""
    try:
        number = int(code, 16)
    except ValueError:
        return ""
    low = number - 0xF000 if 0xF000 <= number <= 0xF0FF else number  # where Windows puts symbol fonts
    table = _FONTS.get(font.lower().strip())
    if table is not None:
        return table.get(chr(low), "") if low <= 0xFF else ""
    return "" if not 0x20 <= number <= 0x10FFFF or 0xD800 <= number <= 0xF8FF else chr(number)
