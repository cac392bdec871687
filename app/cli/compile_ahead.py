"""A second process for the first run: it compiles the clock, the checks and the account of a launch.

The process that runs the kernel compiles the rest meanwhile, and finds this part among the code that
is kept. It asks for nothing: a part that this process does not deliver, it compiles itself.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from threading import Thread
from typing import TYPE_CHECKING, Any

from ..worker_pool import free_cores

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

PARTS = tuple(f"{__name__.split('.')[0]}.sim.{part}." for part in ("checks", "pipes", "account"))
"""What the modules of such functions begin with."""

_KERNEL = """
@pl.program
class Ahead:
    @pl.function(type=pl.FunctionType.InCore)
    def kernel(
        self,
        a: pl.Tensor[[16, 64], pl.FP8E4M3FN],
        a_scale: pl.Tensor[[16, 2], pl.FP8E8M0, pl.MX_A_ZZ],
        b: pl.Tensor[[64, 32], pl.FP8E4M3FN],
        b_scale: pl.Tensor[[2, 32], pl.FP8E8M0, pl.MX_B_NN],
        c: pl.Out[pl.Tensor[[16, 32], pl.FP32]],
    ):
        a_l1 = pl.load(a, [0, 0], [16, 64], target_memory=pl.Mem.Mat)
        as_l1 = pl.load(a_scale, [0, 0], [16, 2], target_memory=pl.Mem.Mat)
        b_l1 = pl.load(b, [0, 0], [64, 32], target_memory=pl.Mem.Mat)
        bs_l1 = pl.load(b_scale, [0, 0], [2, 32], target_memory=pl.Mem.Mat)
        a_l0 = pl.move(a_l1, target_memory=pl.Mem.Left)
        as_l0 = pl.move(as_l1, target_memory=pl.Mem.LeftScale)
        b_l0 = pl.move(b_l1, target_memory=pl.Mem.Right)
        bs_l0 = pl.move(bs_l1, target_memory=pl.Mem.RightScale)
        acc = pl.matmul_mx(a_l0, as_l0, b_l0, bs_l0)
        c = pl.store(acc, [0, 0], c)
        return c
"""
_START = "import sys; sys.path[:] = sys.argv[2:]; __import__(sys.argv[1], fromlist=['main']).main()"
_WAIT_SECONDS = 0.02
_LAST_SECONDS = 5.0


class Ahead:
    """Such a process, while it is at work.

    Args:
        on_news: Called now and then while it is waited for.

    Attributes:
        compiled: The names of the functions that it has compiled.
    """

    def __init__(self, on_news: Callable[[], None]) -> None:
        self._on_news = on_news
        self.compiled: set[str] = set()
        self._heard = b""
        self._process: subprocess.Popen[bytes] | None = None

    def begin(self) -> None:
        """Let it begin; where no process may begin, or there is but one core, there is none."""
        if free_cores() < 2 or not sys.executable or sys.platform == "win32":
            return
        path = [folder or os.getcwd() for folder in sys.path]  # noqa: PTH109 - as Python itself means it
        command = [sys.executable, "-P", "-c", _START, __name__, *path]
        try:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                bufsize=0,
            )
        except OSError:
            return
        assert self._process.stdout is not None
        os.set_blocking(self._process.stdout.fileno(), False)

    def listen(self) -> None:
        """Take note of what it has told by now."""
        if self._process is None or self._process.stdout is None:
            return
        while heard := self._process.stdout.read(1 << 16):
            self._heard += heard
        *lines, self._heard = self._heard.split(b"\n")
        self.compiled |= {line.decode() for line in lines}

    def wait_for(self, module: str, path: Path) -> bool:
        """Wait until a file is there that this process writes; return whether it is."""
        if not module.startswith(PARTS):
            return False
        while self._process is not None and self._process.poll() is None:
            if path.exists():
                return True
            self.listen()
            self._on_news()
            time.sleep(_WAIT_SECONDS)
        return path.exists()

    def end(self) -> None:
        """Let it end, whatever it is doing."""
        if self._process is None:
            return
        process, self._process = self._process, None
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.close()
        try:
            process.wait(_LAST_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        process.stdout.close()


def main() -> None:
    """Compile, and tell the name of each function on standard output; end with the parent at the latest."""
    Thread(target=_end_with_parent, daemon=True).start()
    from numba.core import event as compiler_events

    from ...ir.jit import name_of
    from ...ir.language.text import parse
    from ...sim.core import Core
    from ..account.analysis import Analysis
    from ..api import run

    untyped: Any = compiler_events

    class Teller(compiler_events.Listener):
        def on_start(self, event: object) -> None:
            pass

        def on_end(self, event: Any) -> None:
            print(name_of(event.data["dispatcher"]), flush=True)

    def inside(*_: object) -> None:
        """Find every access inside of its memory: whoever runs kernels compiles what looks at that."""

    untyped_core: Any = Core
    untyped_core.check_bounds = inside
    with untyped.install_listener("numba:compile", Teller()):
        result = run(parse(_KERNEL), functional=False, warm=True)  # pyright: ignore[reportArgumentType]
        analysis = Analysis(result)
        _ = analysis.path, analysis.pipes


def _end_with_parent() -> None:
    while os.read(0, 1):
        pass
    os._exit(1)


if __name__ == "__main__":
    main()
