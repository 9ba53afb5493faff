"""What engines compute on a GPU is what PyTorch computes, whatever optimization profile they use and used before."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from gpu.prepared import CALLS, NAMES, Case

from executorch_tensorrt import Module, OptimizationProfileGuard

Cases = Callable[[str], Case]


def used(module: Module) -> list[int]:
    return [selection.profile for selection in module.last_selections]


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("name", NAMES)
def test_every_profile_gives_pytorchs_outputs(name: str, call: str, case: Cases) -> None:
    """The largest call has the largest output that is planned for."""
    program = case(name)
    values = program.calls[call]
    module = Module(program.path, optimization_profile="auto")
    values.assert_is(module.forward(*values.inputs))
    assert used(module) == [0 if call == "first" else 1] * (2 if name == "two" else 1)


@pytest.mark.parametrize("name", NAMES)
def test_profiles_take_turns(name: str, case: Cases) -> None:
    """0, 1, 0 and on, with another shape of profile 1 in between: each call is as if it were the only one."""
    program = case(name)
    module = Module(program.path, optimization_profile="auto")
    for call in ("first", "second", "first", "largest", "second", "first", "first", "largest"):
        values = program.calls[call]
        values.assert_is(module.forward(*values.inputs))


@pytest.mark.parametrize("index", [0, 1])
def test_pinned_profile_is_used(index: int, case: Cases) -> None:
    program = case("block")
    values = program.calls["first"]
    module = Module(program.path)
    with OptimizationProfileGuard(index):
        values.assert_is(module.forward(*values.inputs))
    assert used(module) == [index]


def test_call_without_a_guard_uses_profile_0(case: Cases) -> None:
    program = case("block")
    module = Module(program.path)
    first, second = program.calls["first"], program.calls["second"]
    first.assert_is(module.forward(*first.inputs))
    assert used(module) == [0]
    with pytest.raises(ValueError, match="profile 1"):
        module.forward(*second.inputs)
    first.assert_is(module.forward(*first.inputs))


def test_shape_that_no_profile_takes_leaves_the_module_usable(case: Cases) -> None:
    program = case("mlp")
    first = program.calls["first"]
    module = Module(program.path, optimization_profile="auto")
    too_large = program.calls["largest"].inputs[0].repeat(2, axis=0)
    with pytest.raises(ValueError, match="1024"):
        module.forward(too_large)
    first.assert_is(module.forward(*first.inputs))


def test_two_modules_on_one_program_leave_each_other_alone(case: Cases) -> None:
    program = case("block")
    modules = [Module(program.path, optimization_profile="auto") for _ in range(2)]
    for calls in (("first", "second"), ("second", "first"), ("largest", "first")):
        for module, call in zip(modules, calls, strict=True):
            program.calls[call].assert_is(module.forward(*program.calls[call].inputs))
    del modules[0], module
    values = program.calls["second"]
    values.assert_is(modules[0].forward(*values.inputs))


def test_program_from_memory_runs(case: Cases) -> None:
    program = case("two")
    values = program.calls["second"]
    module = Module(program.path.read_bytes(), optimization_profile="auto")
    values.assert_is(module.forward(*values.inputs))
    assert module.unload_method()
    values.assert_is(module.forward(*values.inputs))


def test_alternating_is_bit_equal_to_the_first_time(case: Cases) -> None:
    program = case("mlp")
    calls = [program.calls[call].inputs for call in ("first", "second")]
    module = Module(program.path, optimization_profile="auto")
    expected = [module.forward(*inputs)[0] for inputs in calls]
    for _ in range(20):
        for inputs, output in zip(calls, expected, strict=True):
            assert module.forward(*inputs)[0].tobytes() == output.tobytes()
