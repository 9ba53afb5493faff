"""What export leaves in memory."""

from __future__ import annotations

import gc
import weakref

import torch
from executorch.backends.xnnpack.partition.xnnpack_partitioner import XnnpackPartitioner
from executorch.exir import to_edge_transform_and_lower
from executorch.exir.lowered_backend_module import LoweredBackendModule
from export_cases import rows
from torch.export import ExportedProgram

from executorch_tensorrt.exporter import export
from executorch_tensorrt.graphs.leftovers import drop_data, share_data


def lowered(model: torch.nn.Module, count: int) -> tuple[ExportedProgram, list[bytes]]:
    """A model for a number of rows, and the data that XNNPACK made of its weights."""
    traced = torch.export.export(model, (torch.ones(count, 4),))
    program = to_edge_transform_and_lower(traced, partitioner=[XnnpackPartitioner()]).exported_program()
    (delegate,) = [child for child in program.graph_module.children() if isinstance(child, LoweredBackendModule)]
    return program, delegate.named_data_store_output.buffers


def test_export_lets_go_of_models_that_it_exported() -> None:
    model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.GELU(), torch.nn.Linear(4, 4)).eval()
    weight = weakref.ref(model[0].weight)
    export(model, [rows((1, 1, 1), (2, 4, 8))])
    del model
    gc.collect()
    assert weight() is None


def test_share_data_keeps_equal_data_once() -> None:
    model = torch.nn.Linear(4, 4).eval()
    programs, data = zip(*(lowered(model, count) for count in (1, 2)), strict=True)
    assert data[0] == data[1]
    assert not any(one is other for one, other in zip(*data, strict=True))
    known: dict[bytes, bytes] = {}
    for program in programs:
        share_data(program, known)
    assert all(one is other for one, other in zip(*data, strict=True))
    drop_data(programs)
    assert not any(data)
