# Generated at build time by flatc, without types.
from typing import Any

def __getattr__(name: str) -> Any: ...
