"""Engines on a device come and go: unloading, other runtimes, and the end of the process."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from fakes.python_engine import FakeCuda
from runtime.device_programs import Load, doubled

from executorch_tensorrt import _native

REPOSITORY = Path(__file__).parents[2]
VALUES = np.arange(8, dtype=np.float32).reshape(2, 4)


def test_unloading_frees_the_device(cuda: FakeCuda, load: Load) -> None:
    module, runtime = load(doubled())
    array = cuda.array(VALUES)
    before = cuda.allocations()
    for _ in range(2):
        np.testing.assert_array_equal(module.forward(array)[0].numpy(), 2 * VALUES)
        np.testing.assert_array_equal(module.forward(VALUES)[0], 2 * VALUES)
        assert cuda.allocations() > before
        module.unload_method()
        assert cuda.allocations() == before
    assert len(runtime.named("load")) == 2


def test_failed_load_frees_the_device(cuda: FakeCuda, load: Load) -> None:
    module, runtime = load(doubled())
    before = cuda.allocations()
    runtime.types = ["float32", "int32"]
    with pytest.raises(ValueError, match="the engine reports dtype int32, the program has float32"):
        module.load_method()
    assert cuda.allocations() == before


def test_engine_with_other_ranges_than_the_program_is_refused(cuda: FakeCuda, load: Load) -> None:
    module, runtime = load(doubled())
    runtime.profiles = runtime.profiles[:1]
    with pytest.raises(ValueError, match="profile"):
        module.load_method()


def test_contexts_share_the_activation_memory_of_the_largest_profile_in_use(cuda: FakeCuda, load: Load) -> None:
    module, runtime = load(doubled(), optimization_profile="auto")
    for values in (VALUES, np.concatenate([VALUES] * 3), VALUES):
        module.forward(values)
    made = runtime.named("create_context")
    assert [profile for profile, *_ in made] == [0, 1]
    assert [size for *_, size in made] == [1024, 2048]
    # That of before has the larger block from its next call on.
    assert runtime.named("set_activation_memory") == [made[1][-2:]]


def test_steady_call_asks_the_engine_for_one_enqueue(cuda: FakeCuda, load: Load) -> None:
    module, runtime = load(doubled())
    module.forward(VALUES)
    array = cuda.array(VALUES)
    kept = [module.forward(array) for _ in range(2)]
    del kept[0]
    module.forward(array)
    runtime.calls.clear()
    module.forward(VALUES)
    assert {name for name, *_ in runtime.calls} <= {"set_input_address", "set_output_address", "enqueue"}
    assert len(runtime.named("enqueue")) == 1


def test_loaded_program_keeps_its_engine_when_its_kind_gets_another_runtime(cuda: FakeCuda, load: Load) -> None:
    module, runtime = load(doubled())
    module.forward(VALUES)
    other = doubled().runtime(cuda)
    _native.register_engine_runtime("tensorrt_rtx", other)
    module.forward(VALUES)
    assert (len(runtime.named("enqueue")), len(other.calls)) == (2, 0)
    module.unload_method()
    module.forward(VALUES)
    assert (len(runtime.named("enqueue")), len(other.named("enqueue"))) == (2, 1)


SCRIPT = """
import sys
from pathlib import Path
import numpy as np
from fakes.python_engine import FakeCuda, FakeRuntime, double
from executorch_tensorrt import CudaStreamGuard, Module, _native

cuda = FakeCuda(Path(sys.argv[1]))
cuda.reset()
profiles = [[[(1, 2, 4), (4, 4, 4)]], [[(5, 8, 12), (4, 4, 4)]]]
_native.register_engine_runtime("tensorrt_rtx", FakeRuntime(cuda, profiles, ["float32"] * 2, double))
module = Module(sys.argv[2], profile_level="layers")
module.forward(np.ones((2, 4), np.float32))
array = cuda.array(np.ones((2, 4), np.float32))
guard = CudaStreamGuard(cuda.stream())
if sys.argv[3] == "in flight":
    guard.__enter__()
    (output,) = module.forward(array)
"""


@pytest.mark.parametrize("state", ["idle", "in flight"])
def test_process_ends_with_a_loaded_module(
    state: str,
    fake_cudart: Path,
    load: Load,
    tmp_path: Path,
    run_python: Callable[..., subprocess.CompletedProcess[str]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (tmp_path / "x.pte").write_bytes(doubled().program)
    monkeypatch.setenv("ETRT_CUDART", str(fake_cudart))
    monkeypatch.setenv("PYTHONPATH", str(REPOSITORY / "tests"))
    result = run_python(SCRIPT, str(fake_cudart), str(tmp_path / "x.pte"), state)
    assert (result.returncode, result.stdout, result.stderr) == (0, "", "")
