"""The wheel: what is in it, that it can be moved, and that it runs a program where torch is not to be had."""

from __future__ import annotations

import re
import subprocess
import zipfile
from pathlib import Path

import numpy as np
import torch
from models import rows
from wheels import run_there


def test_wheel_holds_package_library_headers_and_types(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    for name in (
        "executorch_tensorrt/__init__.py",
        "executorch_tensorrt/_native.pyi",
        "executorch_tensorrt/py.typed",
        "executorch_tensorrt/lib/libexecutorch_tensorrt.so",
        "executorch_tensorrt/profiling/renderers/templates/report.html.jinja",
        "executorch_tensorrt/include/executorch_tensorrt/optimization_profile_guard.h",
        "executorch_tensorrt/share/cmake/executorch_tensorrt/executorch_tensorrt-config.cmake",
        "executorch_tensorrt/bin/etrt_runner",
    ):
        assert name in names
    assert any(re.fullmatch(r"executorch_tensorrt/_native\.cpython-.*\.so", name) for name in names)
    strays = [n for n in names if not re.match(r"executorch_tensorrt(/|-0)", n)]
    assert not strays
    assert wheel.stat().st_size < 2_000_000


def test_libraries_have_relative_runpaths_only(site: Path) -> None:
    libraries = list(site.glob("executorch_tensorrt/**/*.so"))
    assert len(libraries) == 2
    for library in [*libraries, site / "executorch_tensorrt" / "bin" / "etrt_runner"]:
        dynamic = subprocess.run(["readelf", "-d", library], capture_output=True, text=True, check=True).stdout
        (runpath,) = re.findall(r"R(?:UN)?PATH.*\[(.*)\]", dynamic)
        assert all(entry.startswith("$ORIGIN") for entry in runpath.split(":")), runpath
        needed = re.findall(r"NEEDED.*\[(.*)\]", dynamic)
        assert not [name for name in needed if re.match(r"lib(torch|c10|python)", name)], needed


RUN = """
import sys

class NoTorch:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] == "torch":
            raise ImportError("torch is not here")

sys.meta_path.insert(0, NoTorch())
import numpy as np
import executorch_tensorrt

assert executorch_tensorrt.__file__.startswith(sys.argv[1]), executorch_tensorrt.__file__
module = executorch_tensorrt.Module(sys.argv[2])
with executorch_tensorrt.OptimizationProfileGuard(1):
    np.save(sys.argv[3], module.forward(np.ones((40, 4), np.float32))[0])
"""


def test_moved_wheel_runs_a_program_without_torch(site: Path, tmp_path: Path) -> None:
    (tmp_path / "rows.pte").write_bytes(rows().buffer)
    result = run_there(site, "-c", RUN, str(site), str(tmp_path / "rows.pte"), str(tmp_path / "out.npy"))
    assert result.returncode == 0, result.stderr
    expected = rows().eager(torch.ones(40, 4))[0].numpy()
    np.testing.assert_allclose(np.load(tmp_path / "out.npy"), expected, rtol=1e-5)


def test_exporting_without_torch_says_what_to_install(site: Path) -> None:
    code = RUN.split("import numpy")[0] + "import executorch_tensorrt\nexecutorch_tensorrt.export"
    result = run_there(site, "-c", code)
    assert result.returncode == 1
    assert "exporting needs torch; install executorch-tensorrt[export]" in result.stderr
