"""`etrt run --input`: from a text to an array or a number."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np

KINDS = ("zeros", "ones", "arange", "random")
DTYPES = ("float32", "float16", "float64", "int64", "int32", "int16", "int8", "uint8", "bool")

GRAMMAR = (
    f"a .npy file, KIND:DTYPE[DIM,DIM,...] with KIND one of {', '.join(KINDS)}, or a number. 'random' draws floats "
    "from the normal distribution and integers from 0 to 99."
)
EXAMPLE = "random:float32[1,8,64]"

_SPEC = re.compile(r"(?P<kind>\w+):(?P<dtype>\w+)\[(?P<dims>[^\[\]]*)\]")
_RANDOM_INTEGERS = 100


def parse_value(text: str, index: int, rng: np.random.Generator) -> Any:
    """One method input.

    Raises:
        ValueError: the text is not as the grammar says, or the file holds no array.
        OSError: the file cannot be read.
        MemoryError: the array does not fit into memory.
    """
    number = _number(text)
    if number is not None:
        return number
    match = _SPEC.fullmatch(text.strip())
    if match is not None:
        try:
            return _array(match, f"--input {index}", rng)
        except MemoryError as error:
            raise MemoryError(f"--input {index} does not fit into memory: got '{text}'; give smaller dims.") from error
    if text.endswith(".npy") or Path(text).is_file():
        return _file(text, f"--input {index}")
    raise ValueError(f"--input {index} is not valid: got '{text}', allowed {GRAMMAR} Write it as '{EXAMPLE}'.")


def spec_of(dtype: str, sizes: tuple[int, ...]) -> str:
    """A text for an array of this type and shape, for messages."""
    return f"random:{dtype}[{','.join(map(str, sizes))}]"


def _number(text: str) -> int | float | bool | None:
    if text in ("true", "false"):
        return text == "true"
    for convert in (int, float):
        try:
            return convert(text)
        except ValueError:
            continue
    return None


def _array(match: re.Match[str], where: str, rng: np.random.Generator) -> np.ndarray[Any, Any]:
    import numpy as np

    kind, dtype = match["kind"], match["dtype"]
    if kind not in KINDS:
        raise ValueError(f"{where} has an unknown kind: got '{kind}', allowed {', '.join(KINDS)}; use one of them.")
    if dtype not in DTYPES:
        raise ValueError(f"{where} has an unknown dtype: got '{dtype}', allowed {', '.join(DTYPES)}; use one of them.")
    dims = [part.strip() for part in match["dims"].split(",")] if match["dims"].strip() else []
    if not all(dim.isdecimal() and len(dim) <= 10 for dim in dims):
        raise ValueError(f"{where} has a wrong dim: got '[{match['dims']}]', allowed sizes from 0; write it as [1,64].")
    shape = tuple(map(int, dims))
    if kind == "zeros":
        return np.zeros(shape, dtype)
    if kind == "ones":
        return np.ones(shape, dtype)
    if kind == "arange":
        counted: Any = np.arange(math.prod(shape), dtype=np.int64)
        return counted.reshape(shape).astype(dtype)
    if dtype == "bool":
        return rng.integers(0, 2, shape).astype(dtype)
    if dtype.startswith("float"):
        return rng.standard_normal(shape).astype(dtype)
    return rng.integers(0, _RANDOM_INTEGERS, shape).astype(dtype)


def _file(text: str, where: str) -> np.ndarray[Any, Any]:
    import numpy as np

    path = Path(text)
    if not path.is_file():
        raise FileNotFoundError(f"{where}: no file at '{path}'")
    try:
        loaded: Any = np.load(path, allow_pickle=False)
    except (OSError, MemoryError):
        raise
    except Exception as error:  # NumPy reads the header as Python: SyntaxError, TokenError, UnicodeError and others
        raise ValueError(
            f"{where} is no array: got '{path}', allowed a .npy file of numbers; save it again."
        ) from error
    if isinstance(loaded, np.lib.npyio.NpzFile):
        raise ValueError(
            f"{where} is no array: got '{path}', an archive of several, allowed a .npy file; save one array."
        )
    return loaded
