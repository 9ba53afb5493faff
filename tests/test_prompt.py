"""What the package shows of itself at a prompt."""

from __future__ import annotations

from collections.abc import Callable
from subprocess import CompletedProcess

import executorch_tensorrt


def test_dir_lists_the_public_names() -> None:
    assert dir(executorch_tensorrt) == sorted(executorch_tensorrt.__all__)


def test_dir_leaves_out_what_needs_torch_where_there_is_none(run_python: Callable[..., CompletedProcess[str]]) -> None:
    hide = "import sys; sys.modules['torch'] = None; import executorch_tensorrt as package; "
    missing = run_python(hide + "print(*sorted({*package.__all__} - {*dir(package)}))").stdout.split()
    assert missing == ["ExportedEngineProgram", "TensorRTPartitioner", "export"]
