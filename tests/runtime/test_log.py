"""What the native library has to say: in ExecuTorch's log once per cause, and in Python's logging."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess

import models
import numpy as np
import pytest

from executorch_tensorrt import Module, OptimizationProfileGuard
from executorch_tensorrt.profiling import set_profiling
from executorch_tensorrt.runtime import take_last_error

LOGGER = "executorch_tensorrt.runtime"


@pytest.fixture
def module() -> Module:
    return Module(models.rows().buffer)


def fail(module: Module, rows: int) -> str:
    with pytest.raises(ValueError, match="allowed") as error:
        module.forward(np.ones((rows, 4), np.float32))
    return str(error.value)


def test_failing_calls_are_logged_once_per_cause(module: Module, caplog: pytest.LogCaptureFixture) -> None:
    messages = [fail(module, 9 + call % 50) for call in range(1000)]
    (record,) = caplog.records
    assert (record.name, record.levelno) == (LOGGER, logging.ERROR)
    assert record.getMessage() + " [InvalidArgument]" == messages[0]
    with OptimizationProfileGuard(7), pytest.raises(ValueError, match="allowed 0..1"):
        module.forward(np.ones((2, 4), np.float32))
    assert len(caplog.records) == 2


def test_failing_calls_are_logged_for_each_module(caplog: pytest.LogCaptureFixture) -> None:
    for _ in range(2):
        fail(Module(models.rows().buffer), 9)
    assert len(caplog.records) == 2


def test_what_was_left_out_is_counted_when_the_method_goes(module: Module, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, LOGGER)
    for _ in range(5):
        fail(module, 9)
    module.unload_method()
    last = caplog.records[-1]
    assert last.levelno == logging.INFO
    assert last.getMessage().endswith(": 4 more messages of causes logged before")


def test_load_and_control_failures_are_logged(caplog: pytest.LogCaptureFixture) -> None:
    damaged = Module(models.rows().buffer.replace(b"ETC1", b"ETC9", 1))
    with pytest.raises(ValueError, match="magic 'ETC9'"):
        damaged.load_method()
    with pytest.raises(ValueError, match="loudest"):
        set_profiling("loudest")
    assert [record.name for record in caplog.records] == [LOGGER] * 2


def test_messages_of_the_stock_runtime_come_when_the_guard_ends(caplog: pytest.LogCaptureFixture) -> None:
    import torch
    from executorch.runtime import Runtime

    method = Runtime.get().load_program(models.rows().buffer).load_method("forward")
    assert method is not None
    with OptimizationProfileGuard(0):
        for rows in (9, 10):
            with pytest.raises(RuntimeError):
                method.execute([torch.ones(rows, 4)])
            assert f"got {rows}, allowed 1..8 in profile 0" in take_last_error()
    (record,) = caplog.records
    assert "got 9, allowed 1..8" in record.getMessage()
    assert take_last_error() == ""


def test_messages_of_another_thread_come_with_the_next_call(module: Module, caplog: pytest.LogCaptureFixture) -> None:
    from executorch_tensorrt import _native

    other = _native.Module(models.rows().buffer, False, {})  # forwards nothing

    def work() -> None:
        with pytest.raises(ValueError, match="got 9"):
            other.execute("forward", [np.ones((9, 4), np.float32)], False)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert not caplog.records
    module.forward(np.ones((2, 4), np.float32))
    assert len(caplog.records) == 1


def test_handlers_may_call_modules(module: Module) -> None:
    helper = Module(models.rows().buffer)
    seen: list[int] = []

    class Calling(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            fail(helper, 9)
            (output,) = module.forward(np.ones((2, 4), np.float32))
            seen.append(len(output))

    handler = Calling()
    logging.getLogger(LOGGER).addHandler(handler)
    try:
        fail(module, 9)
    finally:
        logging.getLogger(LOGGER).removeHandler(handler)
    assert seen == [2, 2]


FAIL = """
import logging
import sys
import numpy as np
if sys.argv[2:]:
    logging.basicConfig(level=logging.INFO, format="%(levelname)s %(name)s %(message)s", stream=sys.stdout)
from executorch_tensorrt import Module
module = Module(sys.argv[1])
for call in range(1000):
    try:
        module.forward(np.ones((9 + call % 50, 4), np.float32))
    except ValueError:
        pass
"""


def test_log_of_executorch_has_a_cause_once(tmp_path: Path, run_python: Callable[..., CompletedProcess[str]]) -> None:
    path = tmp_path / "rows.pte"
    path.write_bytes(models.rows().buffer)
    result = run_python(FAIL, str(path))
    assert result.stdout == ""
    lines = [line for line in result.stderr.splitlines() if "CALL_DELEGATE" not in line and "cpuinfo" not in line]
    assert sum("got 9, allowed 1..8" in line for line in lines) == 1
    assert "got 10" not in result.stderr
    # ExecuTorch's way to write a line: logging has printed nothing of its own.
    assert all(line.startswith(("E ", "I ")) for line in lines)
    assert len(lines) <= 4


def test_last_messages_come_at_the_end_of_the_process(
    tmp_path: Path, run_python: Callable[..., CompletedProcess[str]]
) -> None:
    path = tmp_path / "rows.pte"
    path.write_bytes(models.rows().buffer)
    code = FAIL + "module._native.unload_method('forward')"  # forwards nothing
    lines = run_python(code, str(path), "logging").stdout.splitlines()
    assert [line.split()[:2] for line in lines] == [["ERROR", LOGGER], ["INFO", LOGGER]]
    assert "999 more messages" in lines[1]
