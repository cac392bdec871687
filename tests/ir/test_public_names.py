"""What `from scalebox import ir` promises: every public name is there, and none costs an import."""

import subprocess
import sys

import pytest

from scalebox import ir
from scalebox.ir import dtypes


@pytest.mark.parametrize("name", [n for n in dir(ir) if not n.startswith("_")])
def test_every_listed_name_resolves(name: str) -> None:
    assert getattr(ir, name) is not None


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'Nonsense'"):
        _ = ir.Nonsense


def test_the_package_itself_loads_no_numpy() -> None:
    code = "import sys, scalebox.ir; sys.exit('numpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_op_namespaces_make_typed_calls() -> None:
    a = ir.Var("a", ir.TensorType([64, 128], dtypes.DType.E4M3))
    call = ir.op.tile.load(a, [0, 0], [64, 64], target_memory=ir.MemorySpace.Mat)
    assert call.op.name == "tile.load"
    assert call.type == ir.TileType([64, 64], dtypes.DType.E4M3, memory_space=ir.MemorySpace.Mat)
    assert "load" in dir(ir.op.tile)
