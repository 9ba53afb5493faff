"""Packages for the tests of this folder; what profiling was set is set back."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pt2_packages import Package, compile_cache, compile_mixed

from executorch_tensorrt import _native, aoti
from executorch_tensorrt.aoti import saving
from executorch_tensorrt.profiling import clear_profiling


@pytest.fixture(scope="session")
def mixed(tmp_path_factory: pytest.TempPathFactory) -> Package:
    compiled, model = compile_mixed()
    path = tmp_path_factory.mktemp("packages") / "mixed.pt2"
    aoti.save(compiled, path)
    return Package(path, compiled, model)


@pytest.fixture(scope="session")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Package:
    """A package that takes its engine for a large one."""
    compiled, model = compile_cache()
    path = tmp_path_factory.mktemp("packages") / "cache.pt2"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(saving, "LARGE_ENGINE", 1)
        aoti.save(compiled, path)
    return Package(path, compiled, model)


@pytest.fixture(autouse=True)
def _engines_and_settings_end() -> Iterator[None]:
    yield
    clear_profiling()
    aoti.set_profile_format("perfetto")
    _native.release_packaged_engines()
