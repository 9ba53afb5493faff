"""What a `.pte` file holds, read without running it and without torch."""

from executorch_tensorrt.program.reader import (
    BACKEND_ID,
    Delegate,
    Instruction,
    Method,
    Program,
    Value,
    read_program,
)

__all__ = ["BACKEND_ID", "Delegate", "Instruction", "Method", "Program", "Value", "read_program"]
