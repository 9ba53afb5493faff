"""The native parts of the package, for C++: library, headers, CMake package, runner."""

from __future__ import annotations

import os
import signal
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import NoReturn

from executorch_tensorrt import _build_info


def native_folder() -> Path:
    """The folder that CMake takes as a prefix. In an editable install it is not the one of the Python sources."""
    return Path(_build_info.__file__).parent


def run_runner() -> NoReturn:
    """The entry point of `etrt_runner`: the native runner takes the place of this process."""
    runner = native_folder() / "bin" / "etrt_runner"
    spec = find_spec("executorch")
    assert spec is not None
    assert spec.submodule_search_locations
    # It finds the libraries beside it by itself; here they may lie in another site-packages folder.
    folders = [str(Path(next(iter(spec.submodule_search_locations))) / "lib"), os.environ.get("LD_LIBRARY_PATH", "")]
    environment = {**os.environ, "LD_LIBRARY_PATH": ":".join(filter(None, folders))}
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # Python ignores it, and the next program would as well
    os.execve(runner, [runner.name, *sys.argv[1:]], environment)
