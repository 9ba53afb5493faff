"""Two exporters, one backend name: each partition reaches the class of the partitioner that marked it."""

from __future__ import annotations

import subprocess
from collections.abc import Callable

import pytest
import torch
from executorch.exir.backend.compile_spec_schema import CompileSpec

from executorch_tensorrt.exporter.backend import TensorRTBackend

Run = Callable[..., "subprocess.CompletedProcess[str]"]

# A class lives as long as its interpreter, so the other exporter gets one of its own.
OTHER = """
import torch
from executorch.exir import to_edge_transform_and_lower
from executorch.exir.backend.backend_details import BackendDetails, PreprocessResult
from executorch.exir.backend.compile_spec_schema import CompileSpec
from executorch.exir.backend.partitioner import DelegationSpec, Partitioner, PartitionResult

class TensorRTBackend(BackendDetails):
    @staticmethod
    def preprocess(edge_program, compile_specs):
        return PreprocessResult(processed_bytes=b"them")

class TheirPartitioner(Partitioner):
    def partition(self, exported_program):
        for node in exported_program.graph.nodes:
            if "cos" in node.name:
                node.meta["delegation_tag"] = "theirs"
        spec = DelegationSpec("TensorRTBackend", [CompileSpec("target_device", b"cpu")])
        return PartitionResult(exported_program, {"theirs": spec})

class Net(torch.nn.Module):
    def forward(self, x):
        return torch.cos(torch.sin(x))

def delegates(partitioners):
    program = torch.export.export(Net(), (torch.ones(2),))
    edge = to_edge_transform_and_lower(program, partitioner=partitioners).exported_program()
    return [getattr(edge.graph_module, name).processed_bytes[:4] for name in ("lowered_module_0", "lowered_module_1")]
"""
OURS = "from executorch_tensorrt import TensorRTPartitioner\n"
LOWER = """
ours = TensorRTPartitioner(torch_executed_ops=["aten.cos"])
print(delegates([ours, TheirPartitioner()]))
print(delegates([TheirPartitioner(), TensorRTPartitioner()]))
"""


@pytest.mark.parametrize("imports", [OURS + OTHER, OTHER + OURS], ids=["ours first", "theirs first"])
def test_partitions_reach_their_own_exporter(run_python: Run, imports: str) -> None:
    result = run_python(imports + LOWER)
    assert result.returncode == 0, result.stderr
    assert result.stdout.splitlines() == [str([b"ETC1", b"them"]), str([b"them", b"ETC1"])]


def test_foreign_partition_without_its_exporter_is_refused() -> None:
    program = torch.export.export(torch.nn.ReLU(), (torch.ones(2),))
    with pytest.raises(RuntimeError, match="got a partition that another partitioner marked"):
        TensorRTBackend.preprocess(program, [CompileSpec("target_device", b"cuda:0")])
