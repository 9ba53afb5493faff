"""Brings the extension module into the process: checks the ExecuTorch version, then loads the shared libraries.

Neither torch nor ExecuTorch's Python modules are imported: `executorch` is only looked up.
"""

import ctypes
import warnings
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType

from executorch_tensorrt._build_info import EXECUTORCH_VERSION
from executorch_tensorrt.engines.tensorrt.registration import register_runtimes

# In the order in which they need each other. Loaded by path: the extension module's own RUNPATH reaches them only where
# both packages lie in one site-packages folder.
_LIBRARIES = ("threadpool", "", "etdump", "kernels_optimized", "backend_xnnpack")


def _check_executorch_version() -> None:
    try:
        installed = version("executorch")
    except PackageNotFoundError:
        installed = "none"
    if installed != EXECUTORCH_VERSION:
        raise ImportError(
            f"executorch-tensorrt was built against executorch {EXECUTORCH_VERSION}: got executorch {installed}; "
            f"install executorch=={EXECUTORCH_VERSION}, or build executorch-tensorrt again"
        )


def _preload_executorch() -> None:
    spec = find_spec("executorch")
    if spec is None or not spec.submodule_search_locations:
        raise ImportError(f"executorch is not importable; install executorch=={EXECUTORCH_VERSION}")
    lib = Path(next(iter(spec.submodule_search_locations))) / "lib"
    for name in _LIBRARIES:
        path = lib / f"libexecutorch{'_' if name else ''}{name}.so"
        try:
            ctypes.CDLL(str(path))
        except OSError as error:
            raise ImportError(f"executorch {EXECUTORCH_VERSION} is damaged: {error}; install it again") from error


def load_native() -> ModuleType:
    """Returns the extension module with the delegate registered.

    Raises:
        ImportError: another `executorch` version than the one built against.
    """
    _check_executorch_version()
    _preload_executorch()
    from executorch_tensorrt import _native

    if problem := _native.backend_problem():
        warnings.warn(problem, RuntimeWarning, stacklevel=3)
    register_runtimes(_native.register_engine_runtime)
    return _native
