"""Sessions that commands are given: what `etrt profile` wrote, an ETDump with its program, or traces of engines."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from executorch_tensorrt.profiling import Session


def load_session(path: Path, program: Path | None, method: str) -> Session:
    """The session at a path. `program` and `method` are those of an ETDump; with a program the path is one.

    Raises:
        FileNotFoundError, ValueError, OSError: as `Session.load` and `from_etdump` say.
    """
    from executorch_tensorrt.profiling import Session, from_etdump
    from executorch_tensorrt.profiling.etdump import is_etdump
    from executorch_tensorrt.profiling.session import SESSION_FILE
    from executorch_tensorrt.profiling.traces import TRACES, from_traces

    if program is not None:
        if path.is_dir():
            raise ValueError(
                f"'{path}' is a folder: got --program, which is for an ETDump; leave --program out, or give the ETDump"
            )
        return from_etdump(program, path, method=method)
    if path.is_file() and is_etdump(path):
        raise ValueError(f"'{path}' is an ETDump: add --program with the .pte file that ran")
    if path.is_file() and path.suffix == ".pte":
        raise ValueError(f"'{path}' is a program, no session; give the folder that 'etrt profile {path} -o ...' wrote")
    has_traces = path.is_dir() and not (path / SESSION_FILE).exists() and any(path.glob(TRACES))
    return from_traces(path) if has_traces or path.match(TRACES) else Session.load(path)
