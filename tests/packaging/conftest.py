"""The wheel, built once for all tests of it."""

from __future__ import annotations

from pathlib import Path

import pytest
from wheels import build_wheel, install_beside_executorch


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_wheel(tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="session")
def site(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return install_beside_executorch(wheel, tmp_path_factory.mktemp("moved"))
