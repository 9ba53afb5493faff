"""Resolves requirements/*.in anew, for every platform and Python from 3.11, with the hashes of all files of a version.

What is pinned stays as it is where it can; `--upgrade` takes the newest. Torch and what its build for CUDA wants go
into torch.txt: `make build` installs them where it finds no torch without CUDA, which torch-cpu.txt names.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from pathlib import Path

REQUIREMENTS = Path(__file__).resolve().parents[1] / "requirements"
UV = Path(sys.executable).parent / "uv"
OF_TORCH = re.compile(r"torch==|(nvidia|cuda)-|triton==")


def resolve(source: Path, pinned: str, *options: str) -> list[str]:
    """A block of lines for each package."""
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder) / "pinned.txt"
        output.write_text(pinned)
        command = [UV, "pip", "compile", source, "-o", output, "--universal", "--python-version", "3.11"]
        command += ["--generate-hashes", "--no-annotate", "--no-header", "--quiet", *options]
        subprocess.run(command, check=True)
        return re.findall(r"^\S.*\n(?:    .*\n)+", output.read_text(), re.MULTILINE)


def main() -> None:
    files = {name: REQUIREMENTS / f"{name}.txt" for name in ("pip", "dev", "torch")}
    pinned = {name: path.read_text() if path.exists() else "" for name, path in files.items()}
    files["pip"].write_text("".join(resolve(REQUIREMENTS / "pip.in", pinned["pip"], *sys.argv[1:])))
    blocks = resolve(REQUIREMENTS / "dev.in", pinned["dev"] + pinned["torch"], *sys.argv[1:])
    of_torch = [block for block in blocks if OF_TORCH.match(block)]
    files["torch"].write_text("".join(of_torch))
    files["dev"].write_text("".join(block for block in blocks if block not in of_torch))


if __name__ == "__main__":
    main()
