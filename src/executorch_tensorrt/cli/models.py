"""`etrt export MODEL`: from a text to a model."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple, cast

GRAMMAR = (
    "a Python file and a name in it (path/to/file.py:make_model), a module and a name (package.module:make_model), or "
    "a program saved by torch.export.save (model.pt2)"
)


class LoadedModel(NamedTuple):
    """A module or an exported program, and the inputs that its factory declared beside it."""

    model: Any
    inputs: Any


def load_model(text: str) -> LoadedModel:
    """The model that a text names. Code of the user's runs here.

    Raises:
        ValueError: the text names nothing of use.
        FileNotFoundError: there is no such file.
    """
    if text.endswith(".pt2"):
        return LoadedModel(_saved_program(Path(text)), None)
    place, colon, name = text.rpartition(":")
    if not colon or not name.isidentifier():
        raise ValueError(f"MODEL is not valid: got '{text}', allowed {GRAMMAR}.")
    with _importing_from(Path(place).parent if place.endswith(".py") else Path.cwd()):
        module = _module(place)
        if not hasattr(module, name):
            known = [key for key, value in vars(module).items() if _is_own(value, module) and not key.startswith("_")]
            names = ", ".join(known) or "no class and no function"
            raise ValueError(f"MODEL names nothing: got '{name}', allowed what '{place}' has: {names}.")
        return _made(getattr(module, name), text)


def _saved_program(path: Path) -> Any:
    import torch

    if not path.is_file():
        raise FileNotFoundError(f"no exported program at '{path}'")
    try:
        return torch.export.load(path)
    except Exception as error:
        raise ValueError(
            f"'{path}' is no exported program: got {type(error).__name__}, allowed a file that torch.export.save of "
            f"torch {torch.__version__} or older wrote; save it again, or, if it has operators of another package such "
            "as Torch-TensorRT, export it from Python after importing that package."
        ) from error


@contextmanager
def _importing_from(folder: Path) -> Generator[None, None, None]:
    """What Python does for a script: modules beside it can be imported."""
    sys.path.insert(0, str(folder.resolve()))
    try:
        yield
    finally:
        sys.path.remove(str(folder.resolve()))


def _module(place: str) -> ModuleType:
    try:
        return _module_of_file(Path(place)) if place.endswith(".py") else importlib.import_module(place)
    except FileNotFoundError:
        raise
    except ModuleNotFoundError as error:
        raise ValueError(
            f"'{place}' cannot be imported: {error}; run etrt where it can, or give a .py file."
        ) from error
    except Exception as error:
        raise ValueError(f"'{place}' cannot be imported: {type(error).__name__}: {error}") from error


def _module_of_file(path: Path) -> ModuleType:
    if not path.is_file():
        raise FileNotFoundError(f"no Python file at '{path}'")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        raise ValueError(f"'{path}' is no Python file")
    module = importlib.util.module_from_spec(spec)
    # Dataclasses and pickles look their module up there.
    sys.modules.setdefault(path.stem, module)
    spec.loader.exec_module(module)
    return module


def has_own_ranges(model: Any) -> bool:
    """Whether the shapes of the inputs are known without declarations."""
    import torch

    return isinstance(model, torch.export.ExportedProgram)


def _is_own(value: object, module: ModuleType) -> bool:
    # Instances have the __module__ of their class.
    return callable(value) and (not isinstance(value, type) or value.__module__ == module.__name__)


def _made(value: object, text: str) -> LoadedModel:
    import torch

    if callable(value) and not isinstance(value, torch.nn.Module):
        try:
            value = value()
        except Exception as error:
            raise ValueError(f"'{text}' failed: {type(error).__name__}: {error}") from error
    parts = cast("tuple[Any, ...]", value) if isinstance(value, tuple) else (value, None)
    if len(parts) != 2 or not isinstance(parts[0], (torch.nn.Module, torch.export.ExportedProgram)):
        raise ValueError(
            f"'{text}' makes no model: got {_type_names(parts)}, allowed torch.nn.Module or ExportedProgram, alone or "
            "with its inputs as a pair; return one of them."
        )
    model, inputs = parts
    return LoadedModel(model.eval() if isinstance(model, torch.nn.Module) else model, inputs)


def _type_names(parts: tuple[Any, ...]) -> str:
    return " with ".join(type(part).__name__ for part in parts if part is not None) or "None"
