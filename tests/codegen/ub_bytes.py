"""The bytes that instructions around UB touch: the ways in and out by the manual's formula for an
element, those on tiles as the machine has them."""

from collections.abc import Iterable, Iterator

from scalebox.codegen.isa.vocabulary import FixConvert
from scalebox.sim.vector.tiles import tiles_of

Touched = tuple[str, frozenset[int], bool]
UNIT = 32


def ub_bytes(mnemonic: str, f: dict[str, int], bits: int) -> Iterator[Touched]:
    """Yield the bytes of each memory of a core, and whether they are written.

    Args:
        mnemonic: An instruction of the vector core, or the fixpipe's into UB.
        f: Its fields.
        bits: Width of an element of its view, if it has one.
    """
    match mnemonic:
        case "gm_to_ub" | "ub_to_gm":
            yield "ub", _tile(f["ub"], f, bits), mnemonic == "gm_to_ub"
        case "ub_to_gm_boxes":
            boxes = [(i, j) for i in range(f["ni"]) for j in range(f["nj"])]
            yield "ub", frozenset(f["ub"] + (i * f["ub_nj"] + j) * 32 for i, j in boxes), False
        case "ub_to_l1":
            for space, writes in (("ub", False), ("l1", True)):
                lines = [(i, u) for i in range(f["lines"]) for u in range(f["units"])]
                pitch = f[f"{space}_pitch"]
                yield space, frozenset(f[space] + (i * pitch + u) * UNIT for i, u in lines), writes
        case "ub_to_l1_nz":
            wide = 256 // f["bits"]
            yield "ub", _tile(f["ub"], f, f["bits"]), False
            boxes = frozenset(
                f["l1"] + (c // wide * (f["l1_rows"] // 16) + r // 16) * 512 + r % 16 * 32
                for r in range(f["rows"])
                for c in range(f["cols"])
            )
            yield "l1", boxes, True
        case "l0c_to_ub":
            sums = frozenset(
                f["l0c"] + (c // 16 * f["src_boxes"] + r // 16) * 1024 + r % 16 * 64 + c % 16 * 4
                for r in range(f["rows"])
                for c in range(f["cols"])
            )
            yield "l0c", sums, False
            yield "ub", _tile(f["ub"], f, FixConvert(f["convert"]).bits), True
        case "v_move_at":
            for writes in (False, True):
                yield "ub", frozenset(range(0, 1 << 20, UNIT)), writes
        case _:
            results = 2 if mnemonic == "v_quant_mx" else 1
            for number, tile in enumerate(tiles_of(mnemonic, f)):
                begin, size = tile.extent
                touched = frozenset(_units(range(begin, begin + size)))
                yield "ub", touched, number < results
                if mnemonic == "v_select" and number == 0:
                    yield "ub", touched, False


def _tile(address: int, f: dict[str, int], bits: int) -> frozenset[int]:
    pitch = f["pitch"] * UNIT * 8 if f["pitch"] else bits
    return frozenset(
        _units(address + (r * pitch + c * bits) // 8 for r in range(f["rows"]) for c in range(f["cols"]))
    )  # fmt: skip


def _units(addresses: Iterable[int]) -> set[int]:
    return {address - address % UNIT for address in addresses}
