"""Which optimization profiles a recording asks for."""

from executorch_tensorrt.profiling.processors.advice.advise import Advice, advise
from executorch_tensorrt.profiling.processors.advice.model import Choice, ProposedProfile

__all__ = ["Advice", "Choice", "ProposedProfile", "advise"]
