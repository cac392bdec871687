"""The picture of how times grow with the work, as SVG: two panels with logarithmic axes.

The same figures always give the same bytes; nothing but text is written, so nothing is needed to
draw it.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from speed_growth import Growth

WIDTH, HEIGHT = 380, 300
LEFT, RIGHT, TOP, BOTTOM = 62, 16, 40, 46
INK, FAINT, LINE = "#333", "#ddd", "#1f77b4"


@dataclass(frozen=True)
class Axis:
    """A logarithmic axis of whole decades.

    Attributes:
        first, last: Exponents of ten at its ends.
        begin, end: Where these lie in the picture, in pixels.
    """

    first: int
    last: int
    begin: float
    end: float

    @classmethod
    def around(cls, values: Sequence[float], begin: float, end: float) -> "Axis":
        """Return the shortest axis that has all `values`, and one decade at least."""
        first = math.floor(math.log10(min(values)))
        last = math.ceil(math.log10(max(values)))
        return cls(first, max(last, first + 1), begin, end)

    def place(self, value: float) -> float:
        """Return where a positive value lies, in pixels."""
        share = (math.log10(value) - self.first) / (self.last - self.first)
        return self.begin + share * (self.end - self.begin)

    @property
    def decades(self) -> range:
        """The exponents of its grid lines."""
        return range(self.first, self.last + 1)


def picture(growths: Sequence[Growth], sizes: Sequence[int]) -> str:
    """Return the picture of a panel for each kind of work, its points marked with their sizes."""
    width = WIDTH * len(growths)
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{HEIGHT}"'
        ' font-family="sans-serif" font-size="11">',
        f'<rect width="{width}" height="{HEIGHT}" fill="white"/>',
    ]
    for index, growth in enumerate(growths):
        lines.append(f'<g transform="translate({index * WIDTH} 0)">')
        lines += _panel(growth, sizes)
        lines.append("</g>")
    return "\n".join([*lines, "</svg>", ""])


def _panel(growth: Growth, sizes: Sequence[int]) -> Iterator[str]:
    across = Axis.around(growth.counts, LEFT, WIDTH - RIGHT)
    # The line of proportion, which starts below the points, belongs to the picture.
    end, least = growth.seconds[-1], growth.seconds[-1] * growth.counts[0] / growth.counts[-1]
    up = Axis.around([*growth.seconds, least], HEIGHT - BOTTOM, TOP)
    yield from _grid(across, up)
    title = f"{growth.name}: time grows with {growth.unit} to the power {growth.exponent:.2f}"
    yield _text(WIDTH / 2, 22, title, "middle", size=12)
    yield _text(WIDTH / 2, HEIGHT - 8, growth.unit, "middle")
    yield _text(14, 34, "seconds", "start")
    begin = f"{across.place(growth.counts[0]):.1f} {up.place(least):.1f}"
    yield (
        f'<path d="M{begin}L{across.place(growth.counts[-1]):.1f} {up.place(end):.1f}"'
        f' stroke="{LINE}" stroke-dasharray="4 3"/>'
    )
    for size, count, seconds in zip(sizes, growth.counts, growth.seconds, strict=True):
        x, y = across.place(count), up.place(seconds)
        yield f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" fill="{LINE}"/>'
        yield _text(x, y + 18, f"{size}³", "middle")


def _grid(across: Axis, up: Axis) -> Iterator[str]:
    for decade in across.decades:
        x = across.place(10.0**decade)
        yield f'<path d="M{x:.1f} {up.end:.1f}V{up.begin:.1f}" stroke="{FAINT}"/>'
        yield _power(x, up.begin + 16, decade, "middle")
    for decade in up.decades:
        y = up.place(10.0**decade)
        yield f'<path d="M{across.begin:.1f} {y:.1f}H{across.end:.1f}" stroke="{FAINT}"/>'
        yield _power(across.begin - 6, y + 4, decade, "end")


def _power(x: float, y: float, exponent: int, anchor: str) -> str:
    digits = str(exponent).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))
    return _text(x, y, f"10{digits}", anchor)


def _text(x: float, y: float, text: str, anchor: str, *, size: int = 11) -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}"'
        f' fill="{INK}">{text}</text>'
    )
