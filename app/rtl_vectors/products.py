"""Cases of the units that multiply: what goes in, and the FP32 bits that must come out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from ...codegen.isa.vocabulary import ElementType, MadInit
from ...ir.dtypes.boxes import BOX_BYTES, BOX_GROUPS, BOX_ROWS, GROUP
from ...ir.numerics import decode, pack_scales_a
from ...rtl.scale_decode.unit import first_record_cycle
from ...sim.matmul import DTYPES, MadTile, NumericsCube
from ...sim.scales.supply import starved_with_two_boxes

if TYPE_CHECKING:
    import numpy.typing as npt

    from ...rtl.emit.units import Choice

    Codes = npt.NDArray[np.uint8]
    Floats = npt.NDArray[np.float32]

__all__ = ["cube_cases", "dot_cases"]

_LINE_BYTES: Final = 32
_UNUSED: Final = 0xFF
_BIAS: Final = 127
_NAN_SCALE: Final = 0xFF
_SEED: Final = 7
_SUMS: Final = 24

_MIXES: Final = tuple((a, b) for a in ElementType for b in ElementType if a.bits == b.bits)


def dot_cases() -> list[dict[str, Any]]:
    """Return for every mix of formats sums of one to four steps, with specials among them."""
    return [
        {
            "name": f"{a.name} by {b.name}, {kind}",
            **_dot_words(a, b, np.random.default_rng([_SEED, a, b, special]), special),
        }
        for a, b in _MIXES
        for special, kind in enumerate(("finite numbers", "any codes"))
    ]


def _dot_words(
    a: ElementType, b: ElementType, rng: np.random.Generator, special: int
) -> dict[str, Any]:
    """Return the words of sums, and which step each sum follows."""
    steps: list[dict[str, Any]] = []
    sums: list[int] = []
    elements = _LINE_BYTES * 8 // a.bits
    for _ in range(_SUMS):
        groups = int(rng.integers(1, 9))
        tile = _tile(rng, a, b, (1, groups * GROUP, 1), MadInit.ACC, special=special)
        per_step = elements // GROUP
        count = -(-groups // per_step)
        for step in range(count):
            first, here = step * per_step, min(per_step, groups - step * per_step)
            at = slice(first * GROUP, (first + here) * GROUP)
            steps.append(
                {
                    "a": _line(tile.a[0, at], a.bits),
                    "b": _line(tile.b[at, 0], b.bits),
                    "a_type": int(a),
                    "b_type": int(b),
                    **_scales("a_scales", tile.a_scales[0, first : first + here]),
                    **_scales("b_scales", tile.b_scales[first : first + here, 0]),
                    "second": int(here == BOX_GROUPS),
                    "first": int(step == 0),
                    "last": int(step == count - 1),
                    "start": int(tile.start.view(np.uint32)[0, 0]),
                }
            )
        sums.append(int(_product(tile).view(np.uint32)[0, 0]))
    lasts = [place for place, step in enumerate(steps) if step["last"]]
    return {
        "words": {"i": steps, "o": sums},
        "follows": {"o": {"stream": "i", "words": lasts}},
    }


def _line(codes: Codes, bits: int) -> str:
    """Return codes as one number, the first lowest, in hexadecimal digits as all wide ones."""
    return hex(sum(int(code) << (bits * place) for place, code in enumerate(codes)))


def _scales(name: str, codes: Codes) -> dict[str, Any]:
    """Return the fields of decoded scales; those of an absent group are zero."""
    given = [int(code) for code in codes]
    absent = BOX_GROUPS - len(given)
    return {
        f"{name}.exponent": [code - _BIAS for code in given] + [0] * absent,
        f"{name}.is_nan": sum((code == _NAN_SCALE) << place for place, code in enumerate(given)),
    }


@dataclass(frozen=True, slots=True)
class _Mad:
    """A mad of the cube's cases."""

    a: ElementType
    b: ElementType
    m: int
    k: int
    n: int
    init: MadInit
    special: int = 0

    @property
    def name(self) -> str:
        shape = f"{self.m} x {self.k} x {self.n}"
        return f"{self.a.name} by {self.b.name}, {shape}, onto {self.init.name.lower()}"


_MADS: Final = (
    _Mad(ElementType.E4M3, ElementType.E4M3, 16, 64, 16, MadInit.ZERO),
    _Mad(ElementType.E4M3, ElementType.E5M2, 17, 97, 33, MadInit.ACC),
    _Mad(ElementType.E5M2, ElementType.E4M3, 5, 33, 18, MadInit.BIAS, special=1),
    _Mad(ElementType.E5M2, ElementType.E5M2, 1, 1, 1, MadInit.ACC, special=1),
    _Mad(ElementType.E2M1, ElementType.E1M2, 33, 161, 17, MadInit.BIAS),
    _Mad(ElementType.E1M2, ElementType.E2M1, 16, 224, 40, MadInit.ZERO, special=1),
    _Mad(ElementType.E5M2, ElementType.E4M3, 1, 161, 1, MadInit.ACC),
)


def cube_cases(choice: Choice) -> list[dict[str, Any]]:
    """Return mads of every width, with tails in every direction and specials among them.

    Args:
        choice: Width of a beat of scales.
    """
    return [_cube_case(mad, number, choice.beat_bytes) for number, mad in enumerate(_MADS)]


def _cube_case(mad: _Mad, number: int, beat_bytes: int) -> dict[str, Any]:
    rng = np.random.default_rng([_SEED, number])
    tile = _tile(rng, mad.a, mad.b, (mad.m, mad.k, mad.n), mad.init, special=mad.special)
    start = tile.start.copy()
    before = _result_words(start if mad.init is MadInit.ACC else None, mad.m, mad.n)
    bias = np.full(-(-mad.n // BOX_ROWS) * BOX_ROWS, 0xFFFFFFFF, np.uint32)
    if mad.init is MadInit.BIAS:
        bias[: mad.n] = start.view(np.uint32)[0]
    result = _product(tile)
    groups = -(-mad.k // GROUP)
    mad_word = {"m": mad.m, "k": mad.k, "n": mad.n, "a_type": int(mad.a), "b_type": int(mad.b)}
    places = dict.fromkeys(("a", "b", "c", "bias"), 0)
    return {
        "name": mad.name,
        "words": {"mad": [{**mad_word, "init": int(mad.init), **places}]},
        "steps": len(before) * -(-mad.k * mad.a.bits // (_LINE_BYTES * 8)),
        "starved_cycles": _starved_cycles(mad, len(before), beat_bytes),
        "done": 1,
        "memories": {
            "l0a": _lines(tile.a, mad.a.bits),
            "l0b": _lines(np.ascontiguousarray(tile.b.T), mad.b.bits),
            "scale_a": _scale_beats(tile.a_scales, groups, beat_bytes),
            "scale_b": _scale_beats(np.ascontiguousarray(tile.b_scales.T), groups, beat_bytes),
            "bias": _hex_words(bias.view(np.uint8), BOX_ROWS * 4),
            "l0c": before,
        },
        "memories_after": {"l0c": _result_words(result, mad.m, mad.n)},
        "matrices": {
            "a": [row.tobytes().hex() for row in tile.a],
            "b": [row.tobytes().hex() for row in tile.b],
            "a_scales": [row.tobytes().hex() for row in tile.a_scales],
            "b_scales": [row.tobytes().hex() for row in tile.b_scales],
            "start": _patterns(start),
            "result": _patterns(result),
        },
    }


def _starved_cycles(mad: _Mad, tiles: int, beat_bytes: int) -> int:
    """Return the cycles in which the cube waits for scales, of which none are read ahead."""
    first_record = first_record_cycle(beat_bytes)
    return starved_with_two_boxes(
        tiles=tiles,
        groups=-(-mad.k // GROUP),
        paired=mad.a.bits < 8,
        beats=BOX_BYTES // beat_bytes,
        first_record=first_record,
        head=first_record,
    )


def _patterns(values: Floats) -> list[list[str]]:
    """Return the bits of FP32 numbers, eight digits each."""
    return [[f"{int(bits):08x}" for bits in row] for row in values.view(np.uint32)]


def _lines(codes: Codes, bits: int) -> list[str]:
    """Return [rows, k] as words of 16 rows by 32 bytes, row tiles innermost; the rest is 0xFF."""
    rows, depth = codes.shape
    tiles, per_line = -(-rows // BOX_ROWS), _LINE_BYTES * 8 // bits
    steps = -(-depth // per_line)
    padded = np.full((tiles * BOX_ROWS, steps * per_line), (1 << bits) - 1, np.uint8)
    padded[:rows, :depth] = codes
    if bits < 8:
        padded = (padded[:, ::2] | padded[:, 1::2] << bits).astype(np.uint8)
    boxes = padded.reshape(tiles, BOX_ROWS, steps, _LINE_BYTES).transpose(2, 0, 1, 3)
    return _hex_words(np.ascontiguousarray(boxes), BOX_ROWS * _LINE_BYTES)


def _scale_beats(scales: Codes, groups: int, beat_bytes: int) -> list[str]:
    """Return [rows, groups] as words of a beat each; what is not valid is 0xFF."""
    rows = scales.shape[0]
    shape = (-(-rows // BOX_ROWS) * BOX_ROWS, -(-groups // BOX_GROUPS) * BOX_GROUPS)
    padded = np.full(shape, _UNUSED, np.uint8)
    padded[:rows, :groups] = scales
    return _hex_words(pack_scales_a(padded), beat_bytes)


def _result_words(values: Floats | None, m: int, n: int) -> list[str]:
    """Return [m, n] as words of 16 x 16 FP32, row tiles innermost; what is not valid is 0xFF."""
    tiles_m, tiles_n = -(-m // BOX_ROWS), -(-n // BOX_ROWS)
    padded = np.full((tiles_m * BOX_ROWS, tiles_n * BOX_ROWS), 0xFFFFFFFF, np.uint32)
    if values is not None:
        padded[:m, :n] = values.view(np.uint32)
    boxes = padded.reshape(tiles_m, BOX_ROWS, tiles_n, BOX_ROWS).transpose(2, 0, 1, 3)
    return _hex_words(np.ascontiguousarray(boxes).view(np.uint8), BOX_ROWS * BOX_ROWS * 4)


def _hex_words(data: Codes, word_bytes: int) -> list[str]:
    """Return bytes as words of hexadecimal digits, the byte in the lowest bits first."""
    flat = data.reshape(-1, word_bytes)
    return [word.tobytes().hex() for word in flat]


def _product(tile: MadTile) -> Floats:
    """Return what the model's cube makes of a tile, which is left as it is."""
    again = MadTile(
        tile.a,
        tile.a_scales,
        tile.b,
        tile.b_scales,
        tile.a_type,
        tile.b_type,
        tile.start.copy(),
        tile.init,
    )
    return NumericsCube().multiply(again)


def _tile(
    rng: np.random.Generator,
    a: ElementType,
    b: ElementType,
    shape: tuple[int, int, int],
    init: MadInit,
    *,
    special: int,
) -> MadTile:
    """Return a random tile: finite codes and scales near 1, or now and then anything at all."""
    m, k, n = shape
    groups = -(-k // GROUP)
    start = np.zeros((m, n), np.float32)
    if init is MadInit.BIAS:
        start += rng.standard_normal(n, np.float32)
    elif init is MadInit.ACC:
        start += rng.standard_normal((m, n), np.float32)
        if special:
            start[:] = rng.integers(0, 1 << 32, (m, n), np.uint32).view(np.float32)
    return MadTile(
        _codes(rng, a, (m, k), special=special),
        _scale_codes(rng, (m, groups), special=special),
        _codes(rng, b, (k, n), special=special),
        _scale_codes(rng, (groups, n), special=special),
        a,
        b,
        start,
        init,
    )


def _codes(
    rng: np.random.Generator, kind: ElementType, shape: tuple[int, int], *, special: int
) -> Codes:
    """Return codes of a format; infinities and NaNs are rare, for they leave nothing else."""
    codes = rng.integers(0, 1 << kind.bits, shape, np.uint8)
    finite = np.isfinite(decode(np.arange(1 << kind.bits, dtype=np.uint8), DTYPES[kind]))
    kept = rng.random(shape) < (0.01 if special else 0.0)
    return np.where(finite[codes] | kept, codes, np.uint8(1)).astype(np.uint8)


def _scale_codes(rng: np.random.Generator, shape: tuple[int, int], *, special: int) -> Codes:
    """Return scale codes; with specials, far ones, and a NaN among many."""
    near = rng.integers(_BIAS - 6, _BIAS + 7, shape, np.uint8)
    if not special:
        return near
    far = rng.integers(0, _NAN_SCALE, shape, np.uint8)
    codes = np.where(rng.random(shape) < 0.3, far, near)
    return np.where(rng.random(shape) < 0.02, np.uint8(_NAN_SCALE), codes).astype(np.uint8)
