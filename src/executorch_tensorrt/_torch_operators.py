"""The operators that packages of PyTorch call: registered with torch as soon as both are in the process.

torch is not imported for them, and a process without it never notices.
"""

import atexit
import logging
import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

from executorch_tensorrt import _native

_log = logging.getLogger(__name__)


def register_with_torch() -> None:
    """Registers the operators now if torch has been imported, else at the end of its import."""
    if "torch" in sys.modules:
        _register()
    else:
        sys.meta_path.insert(0, _AfterTorch())


def _register() -> None:
    try:
        _native.register_torch_operators()
    except RuntimeError as error:  # a torch that is too old runs no packages, and is no reason to fail
        _log.info("PyTorch packages with engines can't run here: %s", error)
        return
    # Before the interpreter ends: engines may need it.
    atexit.register(_native.release_packaged_engines)


class _AfterTorch(MetaPathFinder):
    """Finds torch as the other finders do, and has its import end with the registration."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname != "torch":
            return None
        others = (finder for finder in sys.meta_path if finder is not self and hasattr(finder, "find_spec"))
        spec = next(filter(None, (finder.find_spec(fullname, path, target) for finder in others)), None)
        if spec is None or spec.loader is None:
            return spec
        load = spec.loader.exec_module

        def load_then_register(module: ModuleType) -> None:
            load(module)
            if self in sys.meta_path:
                sys.meta_path.remove(self)
            _register()

        setattr(spec.loader, "exec_module", load_then_register)  # noqa: B010
        return spec
