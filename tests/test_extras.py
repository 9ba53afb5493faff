"""What is said of a missing package. tests/packaging has the same in an environment that really lacks it."""

from __future__ import annotations

import sys
from importlib import import_module

import pytest

from executorch_tensorrt.extras import needs_extra


def test_missing_package_of_an_extra_is_told_with_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "rich", None)
    with pytest.raises(ModuleNotFoundError) as told, needs_extra("report", "a table"):
        import_module("rich")
    expected = "a table needs the extra 'report': got no module 'rich'; install executorch-tensorrt[report]."
    assert (str(told.value), told.value.name) == (expected, "rich")


def test_module_that_no_extra_installs_is_told_as_it_is() -> None:
    with pytest.raises(ModuleNotFoundError, match=r"^No module named 'nosuch'$"), needs_extra("report", "a table"):
        import_module("nosuch")
