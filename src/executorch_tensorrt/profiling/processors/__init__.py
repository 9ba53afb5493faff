"""Pure functions from a session to what a report shows."""

from executorch_tensorrt.profiling.processors.advice import Advice, Choice, ProposedProfile, advise
from executorch_tensorrt.profiling.processors.comparison import Change, Comparison, compare
from executorch_tensorrt.profiling.processors.device_times import DeviceTime, device_times
from executorch_tensorrt.profiling.processors.findings import Finding, findings
from executorch_tensorrt.profiling.processors.gaps import Gap, OperatorTime, gaps
from executorch_tensorrt.profiling.processors.layers import Layer, layers
from executorch_tensorrt.profiling.processors.phases import DelegatePhases, Phase, phases
from executorch_tensorrt.profiling.processors.profiles import ProfileCost, ShapeCost, profile_costs
from executorch_tensorrt.profiling.processors.regions import Region, regions
from executorch_tensorrt.profiling.processors.spread import RunSpread, spread, typical_run
from executorch_tensorrt.profiling.processors.times import Times

__all__ = [
    "Advice",
    "Change",
    "Choice",
    "Comparison",
    "DelegatePhases",
    "DeviceTime",
    "Finding",
    "Gap",
    "Layer",
    "OperatorTime",
    "Phase",
    "ProfileCost",
    "ProposedProfile",
    "Region",
    "RunSpread",
    "ShapeCost",
    "Times",
    "advise",
    "compare",
    "device_times",
    "findings",
    "gaps",
    "layers",
    "phases",
    "profile_costs",
    "regions",
    "spread",
    "typical_run",
]
